// The package as it is published: what is in it, and that a fresh copy of an agent's project becomes durable with it by a few lines.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentHarness } from "../agents/harness.js";
import { planned } from "../agents/plannedModel.js";
import { cleanEnvironment, startNode } from "../support/script.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const INSTALL_MS = 600_000;
const harness = agentHarness();

const npm = (cwd: string, ...argv: string[]) =>
  promisify(execFile)("npm", argv, { cwd, env: cleanEnvironment(), maxBuffer: 1 << 26 });

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}
let packed: Packed;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "longhaul-package-"));
  await npm(ROOT, "run", "build");
  const { stdout } = await npm(ROOT, "pack", "--ignore-scripts", "--json", "--pack-destination", folder);
  [packed] = JSON.parse(stdout) as [Packed];
}, INSTALL_MS);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the tarball", () => {
  it("holds what is built and what is read, and no file of development", () => {
    const kib = (bytes: number) => `${Math.round(bytes / 1024)} KiB`;
    process.stderr.write(
      `The package: ${kib(packed.size)}, ${kib(packed.unpackedSize)} unpacked, ${packed.files.length} files.\n`,
    );
    const paths = packed.files.map(({ path }) => path);
    const expected =
      /^(package\.json|README\.md|CHANGELOG\.md|LICENSE|docs\/[a-z-]+\.md|dist\/.+\.(js|js\.map|d\.ts|d\.ts\.map|sql))$/;
    expect(paths.filter((path) => !expected.test(path))).toEqual([]);
    expect(paths.filter((path) => /(^|\/)(test|tests|graphs|examples)\/|\.(test|child)\./.test(path))).toEqual([]);
    const entries = [
      "index",
      "langchain/index",
      "openai/index",
      "testing/index",
      "worker/index",
      "server/index",
      "cli/main",
    ];
    expect(paths).toEqual(expect.arrayContaining(entries.map((entry) => `dist/${entry}.js`)));
    expect(packed.size).toBeLessThan(1 << 20);
  });
});

/** What a user changes, as line by line it stands in the README. */
const CHANGES: readonly (readonly [string, string])[] = [
  [
    'import { z } from "zod";',
    'import { z } from "zod";\nimport { durableGraph, openLedger } from "langgraph-longhaul";\nimport { durableAgent } from "langgraph-longhaul/langchain";',
  ],
  [
    "const agent = createAgent({ model, tools: [look, charge] });",
    'const durable = durableAgent({ tools: { look: { version: "1.0.0", effect: "read" }, charge: { version: "1.0.0", effect: "write" } } });\n' +
      "const agent = durableGraph(createAgent({ model, tools: [look, charge], middleware: [durable] }), { ledger: openLedger(), budget: { modelCalls: 3 } });",
  ],
];

describe("a fresh copy of a createAgent project in an empty folder", () => {
  const plan = planned({
    main: [
      [{ name: "look", args: { at: "a" } }],
      [{ name: "charge", args: { amount: 7 } }],
      [{ name: "look", args: { at: "b" } }],
    ],
  });
  let project: string;
  const start = (thread: string, say?: string) =>
    startNode([join(project, "agent.js")], {
      LONGHAUL_DATABASE_URL: harness.db.url,
      MODEL_URL: harness.model.url,
      WORLD_URL: harness.outside.url,
      THREAD: thread,
      ...(say === undefined ? {} : { SAY: say }),
    });

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), "longhaul-project-"));
    await writeFile(join(project, "package.json"), '{ "name": "project", "private": true, "type": "module" }');
    const tarball = join(folder, packed.filename);
    await npm(
      project,
      "install",
      "--no-audit",
      "--no-fund",
      "--prefer-offline",
      "langchain",
      "@langchain/openai",
      "zod",
      "pg",
      tarball,
    );
    await writeFile(join(project, "agent.js"), await readFile(join(ROOT, "test/package/agent.js"), "utf8"));
  }, INSTALL_MS);
  afterAll(() => rm(project, { recursive: true, force: true }));

  it("runs as it is", async () => {
    expect((await start("stock", plan).ended).lines.at(-1)).toEqual({ last: "done" });
    expect(harness.model.requests).toHaveLength(4);
  }, 120_000);

  it("with at most five lines changed goes on after a kill, and stops at its budget", async () => {
    const stock = await readFile(join(project, "agent.js"), "utf8");
    const durable = CHANGES.reduce((text, [from, to]) => text.replace(from, to), stock);
    const before = new Set(stock.split("\n"));
    expect(durable.split("\n").filter((line) => !before.has(line)).length).toBeLessThanOrEqual(5);
    await writeFile(join(project, "agent.js"), durable);

    const first = start("five lines", plan);
    harness.model.beforeAnswer = (_request, nth) => {
      if (nth === 3) first.child.kill("SIGKILL");
      return undefined;
    };
    expect(await first.ended).toMatchObject({ signal: "SIGKILL" });
    harness.model.beforeAnswer = () => undefined;
    // Three calls were made, of which one was lost: the fourth would pass the budget.
    const second = await start("five lines").ended;
    expect(second.lines.at(-1), second.stderr).toMatchObject({ asks: "BUDGET_EXCEEDED" });
    expect(harness.model.requests).toHaveLength(3);
    const argv = [
      "budget",
      "raise",
      "five lines",
      "--model-calls",
      "5",
      "--by",
      "ann",
      "--json",
      "--url",
      harness.db.url,
    ];
    await npm(project, "exec", "--", "longhaul", ...argv);
    const third = await start("five lines").ended;
    expect(third.lines.at(-1), third.stderr).toMatchObject({ last: "done" });
    expect(harness.model.requests).toHaveLength(5);
    expect(harness.outside.paymentsOf("five lines")).toHaveLength(1);
    expect(harness.outside.count("page", "five lines")).toBe(2);
  }, 240_000);
});
