// Small repositories to migrate, a model whose answers a test may choose, and work trees that are gone afterwards.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { ChatCompletionRequest } from "@copilotkit/aimock";
import { afterAll } from "vitest";
import { migrationGraph } from "../../../graphs/codeMigration/graph.js";
import type { MigrationState } from "../../../graphs/codeMigration/state.js";
import { strategy } from "../../../graphs/codeMigration/strategy.js";
import { migrationName, WorkTree } from "../../../graphs/codeMigration/workTree.js";
import { answer as codemod } from "../../../graphs/codeMigration/world/standIn/answer.js";
import { requestLog } from "../../../graphs/research/world/requestLog.js";
import type { Answer } from "../../../graphs/research/world/standIn/answer.js";
import { startStandIn } from "../../../graphs/research/world/standIn/server.js";
import { approvalsOf, decide } from "../../../src/index.js";
import { testDatabase } from "../../support/database.js";

/** A package of three files, one of them its test, that needs nothing of the registry. */
export const PACKAGE = {
  "package.json": `${JSON.stringify({ name: "sum", version: "1.0.0", main: "index.js", scripts: { test: "node test.js" } }, null, 2)}\n`,
  "lib/add.js": "module.exports = function add(a, b) {\n  return a + b;\n};\n",
  "index.js": "var add = require('./lib/add');\n\nexports.sum = function (xs) {\n  return xs.reduce(add, 0);\n};\n",
  "test.js":
    "var assert = require('assert');\nvar sum = require('./').sum;\n\nassert.equal(sum([1, 2, 3]), 6);\nconsole.log('ok');\n",
} as const;

export type Files = Readonly<Record<string, string>>;

export const gitIn = (folder: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], {
    cwd: folder,
    encoding: "utf8",
  });

export async function migrationHarness() {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-migration-"));
  const log = requestLog();
  const answers: { current: (request: ChatCompletionRequest) => Answer } = { current: codemod };
  const standIn = await startStandIn({ log, latencyMs: 0, answer: (request) => answers.current(request) });
  process.env["MIGRATION_DIR"] = join(folder, "migrations");
  process.env["MIGRATION_CACHE_DIR"] = join(folder, "cache");
  process.env["MIGRATION_STAND_IN_URL"] = standIn.url;
  process.env["OPENAI_API_KEY"] = "";
  const database = await testDatabase();
  const ledger = database.openLedger();
  const graph = migrationGraph(ledger);
  let count = 0;
  afterAll(async () => {
    await standIn.close();
    await rm(folder, { recursive: true, force: true });
  });
  const config = (thread: string) => ({ configurable: { thread_id: thread }, recursionLimit: 200 });
  return {
    folder,
    log,
    answers,
    codemod,
    database,
    ledger,
    graph,
    config,
    /** A git repository with these files in one commit. */
    repository(files: Files): string {
      const path = join(folder, `repository-${++count}`);
      mkdirSync(path);
      write(path, files);
      gitIn(path, "init", "--quiet");
      gitIn(path, "add", "--all", "--force");
      gitIn(path, "commit", "--quiet", "--message", "All");
      return path;
    },
    /** To the question, and with a yes to the end. */
    async migrate(thread: string, input: { repository?: string; package?: string }): Promise<MigrationState> {
      await graph.invoke({ package: "", repository: "", ...input }, config(thread));
      for (const { id } of await approvalsOf(ledger, { threadId: thread, status: "pending" })) {
        await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
        return await graph.invoke(null, config(thread));
      }
      return (await graph.getState(config(thread))).values;
    },
    treeOf: (thread: string) => new WorkTree(migrationName(thread), strategy.name),
  };
}

export function write(folder: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
