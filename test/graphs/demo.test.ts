// The demo end to end: real processes, a real SIGKILL, a real PostgreSQL, and the world's own counts.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { audit } from "../../graphs/research/demo/audit.js";
import type { WorkerMessage } from "../../graphs/research/demo/messages.js";
import { expectedSteps } from "../../graphs/research/demo/options.js";
import { openLedgerReader } from "../../graphs/research/demo/receipts.js";
import type { DemoResult } from "../../graphs/research/demo/result.js";
import { startWorker, type WorkerProcess } from "../../graphs/research/demo/workerProcess.js";
import { requestLog } from "../../graphs/research/world/requestLog.js";
import { startSite } from "../../graphs/research/world/site.js";
import { startWorld } from "../../graphs/research/world/world.js";
import { openLedger, raiseBudget } from "../../src/index.js";
import { createDatabase } from "../support/database.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
const NONE = { reads: 0, writes: 0, models: 0 };

let reports: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  reports = await mkdtemp(join(tmpdir(), "longhaul-reports-"));
  env = {
    ...process.env,
    LONGHAUL_DATABASE_URL: await createDatabase({ empty: true }),
    RESEARCH_REPORTS_DIR: reports,
    OPENAI_API_KEY: "",
  };
});
afterAll(() => rm(reports, { recursive: true }));

interface Output {
  readonly code: number | null;
  readonly lines: readonly Record<string, unknown>[];
  readonly stdout: string;
  readonly stderr: string;
}

const start = (argv: readonly string[]) =>
  spawn(process.execPath, ["--import", TSX, "graphs/research/demo.ts", ...argv], { cwd: ROOT, env });

function demo(...argv: string[]): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = start(argv);
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => {
      const lines = argv.includes("--json")
        ? stdout
            .split("\n")
            .filter(Boolean)
            .map((line) => JSON.parse(line) as Record<string, unknown>)
        : [];
      resolve({ code, lines, stdout, stderr });
    });
  });
}

const done = ({ lines }: Output): DemoResult => lines.at(-1) as unknown as DemoResult;

describe("npm run demo", () => {
  test("is killed inside a node, answers its steps from the ledger, publishes once and does nothing on record twice", async () => {
    const output = await demo("--json", "--pages", "6", "--kill-at", "3", "--thread", "inside");
    expect(output.code, output.stderr).toBe(0);
    const result = done(output);
    expect(Object.keys(result)).toEqual([
      "event",
      "threadId",
      "pages",
      "kills",
      "steps",
      "replayed",
      "costUsd",
      "world",
      "recorded",
      "inFlightAtKill",
      "duplicates",
      "report",
      "stopped",
      "dbBytesPerPage",
      "largestPromptTokens",
      "rssMb",
    ]);
    expect(result.largestPromptTokens).toBeGreaterThan(100);
    expect(result.dbBytesPerPage).toBeGreaterThan(1_000);
    expect(result.rssMb).toBeGreaterThan(30);
    expect(result).toMatchObject({
      event: "done",
      threadId: "inside",
      pages: 6,
      kills: 1,
      steps: 25,
      duplicates: NONE,
      recorded: { reads: 12, writes: 1, models: 12 },
    });
    expect(result.world.published).toBe(1);
    expect(result.world.pagesServed + result.world.modelRequests).toBeLessThanOrEqual(6 + 12 + result.inFlightAtKill);
    // The node that was killed needs five steps; the three that it had are met again.
    expect(result.replayed).toBeGreaterThanOrEqual(3);
    expect(result.costUsd).toBeGreaterThan(0.001);
    const report = await readFile(result.report ?? "", "utf8");
    const cited = new Set([...report.matchAll(/\[(\d)\]/g)].map(([, number]) => number));
    expect([...cited].sort()).toEqual(["1", "2", "3", "4", "5", "6"]);
    expect(report).toContain("offline stand-in");

    const again = await demo("--json", "--thread", "inside");
    expect(again.code, again.stderr).toBe(0);
    expect(done(again)).toMatchObject({
      pages: 6,
      steps: 25,
      kills: 0,
      world: { pagesServed: 0, published: 1, modelRequests: 0 },
      duplicates: NONE,
      report: result.report,
    });
  });

  test("loses nothing when it is killed at its last step, and tells people in a table what happened", async () => {
    const output = await demo("--pages", "2", "--kill-at", String(expectedSteps(2, false)));
    expect(output.code, output.stderr).toBe(0);
    expect(output.stdout).toMatch(/Killed\s+│ once with SIGKILL, at its step 17\b/);
    expect(output.stdout).toMatch(/Recorded and done again\s+│ nothing/);
    expect(output.stderr).toContain("offline stand-in");
  });

  test("with a budget ends with a report of what it could read, and completes it when the budget is raised, reading nothing twice", async () => {
    const first = await demo(
      "--json",
      "--pages",
      "40",
      "--budget-usd",
      "0.02",
      "--kill-at",
      "40",
      "--thread",
      "thrifty",
    );
    expect(first.code, first.stderr).toBe(0);
    const partial = done(first);
    expect(partial).toMatchObject({ kills: 1, duplicates: NONE, world: { published: 1 } });
    expect(partial.costUsd).toBeLessThanOrEqual(0.02);
    expect(partial.stopped?.unread).toBeGreaterThan(0);
    expect(await readFile(partial.report ?? "", "utf8")).toContain(
      `before these ${partial.stopped?.unread} pages were read`,
    );
    const ledger = openLedger({ url: env["LONGHAUL_DATABASE_URL"] ?? "" });
    await raiseBudget(ledger, { threadId: "thrifty", usd: 1, by: "ann" });
    await ledger.close();
    const second = await demo("--json", "--kill-at", "none", "--thread", "thrifty");
    expect(second.code, second.stderr).toBe(0);
    const whole = done(second);
    expect(whole).toMatchObject({
      pages: 40,
      duplicates: NONE,
      stopped: null,
      world: { published: 2 },
    });
    // The budget can end before the last pages were asked for; those that were are not asked for again.
    expect(whole.world.pagesServed).toBeLessThanOrEqual(partial.stopped?.unread ?? 0);
    expect(await readFile(whole.report ?? "", "utf8")).not.toContain("## Missing");
  });

  test("goes on with its thread after the whole demo was killed, although its world has other ports then", async () => {
    const first = start(["--json", "--pages", "4", "--kill-at", "none", "--thread", "orphan"]);
    await new Promise((resolve) => {
      first.once("close", resolve);
      first.stdout.on("data", (chunk: Buffer) => {
        if (chunk.toString().includes('"name":"read_page"')) first.kill("SIGKILL");
      });
    });
    const output = await demo("--json", "--thread", "orphan", "--kill-at", "none");
    expect(output.code, output.stderr).toBe(0);
    expect(done(output)).toMatchObject({
      pages: 4,
      steps: expectedSteps(4, false),
      world: { published: 1 },
      duplicates: NONE,
    });
    expect(done(output).world.pagesServed).toBeLessThan(4);
  });

  test("reads the pages of a list of addresses instead of its own site, also when it is killed at its first step", async () => {
    const foreign = requestLog();
    const site = await startSite({ log: foreign, latencyMs: 0 });
    try {
      const file = join(reports, "urls.txt");
      await writeFile(
        file,
        ["agents/loop-control", "ai-sdk-core/testing", "no-such-page"]
          .map((path) => `${site.url}/docs/${path}`)
          .join("\n"),
      );
      const output = await demo("--json", "--urls", file, "--kill-at", "1");
      expect(output.code, output.stderr).toBe(0);
      expect(done(output)).toMatchObject({
        pages: 2,
        kills: 1,
        world: { pagesServed: 0, published: 1 },
        duplicates: NONE,
      });
      expect(foreign.requests.map((request) => [request.identity, request.stepKey]).sort()).toEqual([
        ["/docs/agents/loop-control", undefined],
        ["/docs/ai-sdk-core/testing", undefined],
      ]);
      expect(await readFile(done(output).report ?? "", "utf8")).toContain(`${site.url}/docs/agents/loop-control`);
    } finally {
      await site.close();
    }
  });

  test("refuses a bad option with exit code 2 and nothing on stdout", async () => {
    const output = await demo("--json", "--pages", "none");
    expect(output).toMatchObject({ code: 2, stdout: "" });
    expect(output.stderr).toContain("--pages");
  });
});

test("a worker that is killed while its report is being published finds the post by its key, and does not post again", async () => {
  let worker: WorkerProcess | undefined;
  let kills = 0;
  const world = await startWorld({
    reportsDirectory: reports,
    onRequest: ({ kind }) => {
      if (kind === "publish" && kills++ === 0) worker?.kill();
    },
  });
  const ledger = await openLedgerReader(env);
  const workerEnv = {
    ...env,
    RESEARCH_SITE_URL: world.siteUrl,
    RESEARCH_PUBLISHER_URL: world.publisherUrl,
    RESEARCH_STAND_IN_URL: world.modelUrl ?? "",
  };
  const messages: WorkerMessage[] = [];
  const live = async () => {
    worker = startWorker(
      { threadId: "publishing", question: undefined, budgetUsd: undefined, pages: 2, urls: [] },
      workerEnv,
      (message) => messages.push(message),
    );
    return await worker.ended;
  };
  try {
    const startedAt = await ledger.now();
    await live();
    expect(messages.some((message) => message.type === "finished")).toBe(false);
    const kill = { requestsBefore: world.log.requests.length, nextStartedAt: await ledger.now() };
    const { stderr } = await live();
    expect(messages.at(-1), stderr).toMatchObject({ type: "finished" });
    expect(world.publisher.published.size).toBe(1);
    expect(world.log.count("publish")).toBe(1);
    expect(world.log.count("lookup")).toBeGreaterThan(0);
    const receipts = await ledger.receipts("publishing");
    expect(audit({ requests: world.log.requests, receipts, kills: [kill], startedAt })).toMatchObject({
      inFlightAtKill: 1,
      duplicates: NONE,
      recorded: { writes: 1 },
    });
  } finally {
    await ledger.close();
    await world.close();
  }
});
