// What cannot be migrated: a clear result, soon, and nothing of the user's is touched.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { fetchPackage } from "../../../graphs/codeMigration/source/npmPackage.js";
import { redrive } from "../../../src/index.js";
import { type Files, gitIn, migrationHarness, PACKAGE } from "./harness.js";

const at = await migrationHarness();
const manifest = (more: object) => ({
  ...PACKAGE,
  "package.json": JSON.stringify({ name: "sum", version: "1.0.0", main: "index.js", ...more }),
});
afterEach(() => {
  delete process.env["MIGRATION_TEST_TIMEOUT_MS"];
});

const { "test.js": _, ...untested } = PACKAGE;
const { "package.json": __, ...unnamed } = PACKAGE;
test.each<[string, Files, string, RegExp]>([
  ["without tests", untested, "no-tests", /no test files/],
  ["without package.json", unnamed, "bad-input", /no package\.json/],
  ["with a package.json that is none", { ...PACKAGE, "package.json": "[" }, "bad-input", /JSON object/],
  ["with native code", { ...PACKAGE, "binding.gyp": "{}" }, "native-code", /binding\.gyp/],
  ["with a native loader", manifest({ dependencies: { bindings: "1" } }), "native-code", /bindings/],
  ["with a syntax error", { ...PACKAGE, "lib/add.js": "module.exports = function (" }, "syntax-error", /lib\/add\.js/],
  ["that is ESM by its type", manifest({ type: "module" }), "already-esm", /already/],
  [
    "that is ESM by its exports",
    manifest({ exports: { import: "./a.mjs", require: "./index.js" } }),
    "already-esm",
    /already/,
  ],
  [
    "that has a file too large",
    { ...PACKAGE, "big.js": `var x = "${"x".repeat(70_000)}";` },
    "file-too-large",
    /big\.js/,
  ],
  ["whose tests fail", { ...PACKAGE, "test.js": "throw new Error('always');" }, "tests-fail-before", /Before.*always/s],
  ["whose tests run with something else", manifest({ scripts: { test: "jest" } }), "unknown-test-runner", /jest/],
])("refuses a package %s", async (what, files, reason, message) => {
  const repository = at.repository(files);
  const result = await at.migrate(`refused: ${what}`, { repository });
  expect(result.outcome).toEqual({ status: "refused", reason, message: expect.stringMatching(message) });
  expect(result.edits).toEqual([]);
  expect(gitIn(repository, "status", "--porcelain")).toBe("");
});

test("refuses a test suite that hangs when its time is over", async () => {
  process.env["MIGRATION_TEST_TIMEOUT_MS"] = "2000";
  const repository = at.repository({ ...PACKAGE, "test.js": "require('./index'); setInterval(function () {}, 1000);" });
  const result = await at.migrate("hangs", { repository });
  expect(result.outcome).toMatchObject({ reason: "tests-hang", message: expect.stringContaining("test.js") });
});

test.each([
  ["a change", (path: string) => writeFileSync(join(path, "index.js"), "changed\n")],
  ["a new file", (path: string) => writeFileSync(join(path, "new.js"), "new\n")],
])("refuses a work tree with %s that is not committed, and leaves it as it is", async (what, dirty) => {
  const repository = at.repository(PACKAGE);
  dirty(repository);
  const before = gitIn(repository, "status", "--porcelain");
  const result = await at.migrate(`dirty: ${what}`, { repository });
  expect(result.outcome).toMatchObject({ reason: "dirty-work-tree", message: expect.stringMatching(/commit/i) });
  expect(gitIn(repository, "status", "--porcelain")).toBe(before);
});

test("refuses what is no repository, and runs none of its hooks or programs", async () => {
  const repository = at.repository(PACKAGE);
  writeFileSync(
    join(repository, ".git/config"),
    `${readFileSync(join(repository, ".git/config"), "utf8")}\n[core]\n\tfsmonitor = "touch ${at.folder}/pwned"\n`,
  );
  await at.migrate("hooked", { repository });
  expect(() => readFileSync(join(at.folder, "pwned"))).toThrow("ENOENT");
  const plain = join(at.folder, "plain");
  mkdirSync(plain);
  expect((await at.migrate("no repository", { repository: plain })).outcome).toMatchObject({ reason: "bad-input" });
  expect((await at.migrate("no folder", { repository: join(plain, "gone") })).outcome).toMatchObject({
    reason: "not-found",
  });
  expect((await at.migrate("relative", { repository: "plain" })).outcome).toMatchObject({ reason: "bad-input" });
});

test.each([
  "",
  "--prefix=/tmp",
  "../x",
  "/etc",
  "file:../x",
  "git+ssh://x/y",
  "http://x/y.tgz",
  "a b",
  "a@b@c",
  "x".repeat(400),
  "github:a/b",
])("takes %j for no package, and asks nobody", async (spec) => {
  expect(await fetchPackage(spec, AbortSignal.timeout(1_000))).toMatchObject({
    status: "refused",
    reason: "bad-input",
  });
});

test("does not follow a link out of the repository", async () => {
  const repository = at.repository(PACKAGE);
  const outside = join(at.folder, "outside.js");
  writeFileSync(outside, "module.exports = 1;\n");
  symlinkSync(outside, join(repository, "linked.js"));
  gitIn(repository, "add", "--all");
  gitIn(repository, "commit", "--quiet", "--message", "Link");
  const result = await at.migrate("linked", { repository });
  expect(result.outcome?.status).toBe("delivered");
  expect(result.files.map(({ path }) => path)).not.toContain("linked.js");
  expect(readFileSync(outside, "utf8")).toBe("module.exports = 1;\n");
});

const mayMount = process.platform === "linux" && process.getuid?.() === 0;
if (!mayMount) console.warn("Skipped: a small file system can be mounted by root on Linux only.");
test.skipIf(!mayMount)("says that the disk is full, applies nothing, and goes on when there is room", async () => {
  const small = join(at.folder, "small");
  mkdirSync(small);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=48k", "tmpfs", small]);
  const directory = process.env["MIGRATION_DIR"];
  try {
    process.env["MIGRATION_DIR"] = small;
    const repository = at.repository(PACKAGE);
    await expect(at.migrate("full", { repository })).rejects.toThrow(/no space left.*redrive/is);
    expect(gitIn(repository, "status", "--porcelain")).toBe("");
    execFileSync("mount", ["-o", "remount,size=64m", small]);
    await redrive(at.ledger, { threadId: "full", by: "ann" });
    await at.graph.invoke(null, at.config("full"));
    const { values, next } = await at.graph.getState(at.config("full"));
    expect(next).toEqual(["approve"]);
    expect(values.testsAfter).toMatchObject({ passed: 1, failed: 0 });
  } finally {
    process.env["MIGRATION_DIR"] = directory;
    execFileSync("umount", ["-l", small]);
    rmSync(small, { recursive: true, force: true });
  }
});
