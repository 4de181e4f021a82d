// The code-migration graph in one process, on small repositories: what comes out, and that nothing else is touched.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applyEdit } from "../../../graphs/codeMigration/applyEdit.js";
import { type Artifacts, compensate } from "../../../src/index.js";
import { gitIn, migrationHarness, PACKAGE } from "./harness.js";

const at = await migrationHarness();

const filesOf = (thread: string, revision: string) => {
  const { repository } = at.treeOf(thread);
  const paths = gitIn(repository, "ls-tree", "-r", "--name-only", revision).split("\n").filter(Boolean);
  return Object.fromEntries(paths.map((path) => [path, gitIn(repository, "show", `${revision}:${path}`)]));
};

test("migrates every file and package.json in a commit each, asks, and delivers a patch that applies to the original", async () => {
  const repository = at.repository(PACKAGE);
  const before = statSync(join(repository, ".git/index")).mtimeMs;
  const result = await at.migrate("whole", { repository });
  expect(result).toMatchObject({
    outcome: { status: "delivered" },
    testsBefore: { passed: 1, failed: 0 },
    testsAfter: { passed: 1, failed: 0 },
    repairs: 0,
  });
  expect(result.edits.map(({ path }) => path).sort()).toEqual(["index.js", "lib/add.js", "package.json", "test.js"]);
  const files = filesOf("whole", result.head);
  expect(files["lib/add.js"]).toBe("export default function add(a, b) {\n  return a + b;\n}\n");
  expect(files["index.js"]).toContain("import add from './lib/add.js';\n\nexport const sum = function (xs) {");
  expect(files["test.js"]).toContain("import assert from 'assert';\nimport { sum } from './index.js';\n");
  expect(JSON.parse(files["package.json"] ?? "")).toEqual({
    name: "sum",
    version: "1.0.0",
    type: "module",
    main: "./index.js",
    exports: {
      ".": "./index.js",
      "./index.js": "./index.js",
      "./index": "./index.js",
      "./lib/add.js": "./lib/add.js",
      "./lib/add": "./lib/add.js",
      "./package.json": "./package.json",
    },
    scripts: { test: "node test.js" },
  });
  // What was read is as it was, index included, and the patch makes of it what was tested.
  expect(statSync(join(repository, ".git/index")).mtimeMs).toBe(before);
  expect(gitIn(repository, "status", "--porcelain")).toBe("");
  gitIn(repository, "am", "--quiet", result.patch);
  expect(gitIn(repository, "rev-parse", "HEAD^{tree}").trim()).toBe(result.tree);
  expect(readFileSync(join(at.treeOf("whole").repository, "index.js"), "utf8")).toBe(files["index.js"]);
});

test("gives the suite's errors back to the file that they name, and commits the repair", async () => {
  // Sloppy code may assign to a name that nobody declared; a module may not.
  const index = "exports.count = function (xs) {\n  for (i = 0; i < xs.length; i++);\n  return i;\n};\n";
  const script =
    "var assert = require('assert');\nvar lib = require('./index');\nassert.equal(lib.count([1, 2]), 2);\n";
  const repository = at.repository({ ...PACKAGE, "index.js": index, "test.js": script });
  const result = await at.migrate("repaired", { repository });
  expect(result).toMatchObject({ outcome: { status: "delivered" }, repairs: 1, testsAfter: { passed: 1, failed: 0 } });
  expect(filesOf("repaired", result.head)["index.js"]).toMatch(/^let i;\nexport const count/);
  expect(gitIn(at.treeOf("repaired").repository, "log", "-1", "--format=%s").trim()).toBe(
    "Repair index.js: CommonJS to ES modules",
  );
});

test("gives up after the rounds that it has, says what fails, and asks nobody", async () => {
  // A CommonJS file is the body of a function; a module is not.
  const wrapped = "require('./index');\nif (typeof arguments !== 'object') throw new Error('no function');\n";
  const repository = at.repository({ ...PACKAGE, "test.js": wrapped });
  const result = await at.migrate("given up", { repository });
  expect(result.outcome).toMatchObject({
    status: "gave-up",
    message: expect.stringMatching(/After the migration 1 of its tests fail/),
  });
  expect(result.testsBefore).toMatchObject({ passed: 1, failed: 0 });
  expect(await at.database.sql("select 1 from longhaul.approvals where thread_id = 'given up'")).toEqual([]);
});

test("is undone by a commit that brings the former text back, newest first, once", async () => {
  const repository = at.repository(PACKAGE);
  const result = await at.migrate("undone", { repository });
  expect(await compensate(at.ledger, at.graph, { threadId: "undone" })).toMatchObject({ complete: true });
  const tree = at.treeOf("undone");
  expect(await tree.treeOf(tree.branch)).toBe(await tree.treeOf(result.base));
  expect(await tree.keysSince(result.base)).toHaveLength(8);
});

test("commits an edit once, whoever applies it again under its key, and keeps two at once apart", async () => {
  const repository = at.repository(PACKAGE);
  const { base } = await at.migrate("once", { repository });
  const tree = at.treeOf("once");
  const context = { attempt: 1, signal: new AbortController().signal, artifacts: {} as Artifacts };
  const edit = (path: string) => ({ migration: tree.name, path, text: `// ${path}\n`, message: `Edit ${path}` });
  const keys = ["a", "b", "c", "a", "b", "c"];
  const receipts = await Promise.all(
    keys.map((key) => applyEdit.run(edit(`${key}.js`), { ...context, idempotencyKey: key.repeat(64) })),
  );
  expect(new Set(receipts.map(({ commit }) => commit)).size).toBe(3);
  expect((await tree.keysSince(base)).filter((key) => /^(a|b|c)+$/.test(key))).toHaveLength(3);
  expect(
    await applyEdit.lookup?.({ idempotencyKey: "a".repeat(64), input: edit("a.js"), signal: context.signal }),
  ).toEqual({
    outcome: "happened",
    receipt: receipts[0],
  });
  expect(
    await applyEdit.lookup?.({ idempotencyKey: "d".repeat(64), input: edit("d.js"), signal: context.signal }),
  ).toEqual({
    outcome: "did-not-happen",
  });
});
