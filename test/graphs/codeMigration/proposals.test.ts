// What a model may not do: its proposal is refused, told to it, kept on record, and nothing comes of it.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { leavesTree } from "../../../graphs/codeMigration/insideTree.js";
import { refusedCommand } from "../../../graphs/codeMigration/sandbox/allowed.js";
import { textOf } from "../../../graphs/research/world/standIn/answer.js";
import { gitIn, migrationHarness, PACKAGE } from "./harness.js";

const at = await migrationHarness();

interface Proposed {
  path: string;
  text: string;
  commands: string[][];
}

/** A model that spoils its first answer about index.js, and does well when it is told. */
function spoiling(spoil: (proposal: Proposed) => Proposed): string[] {
  const heard: string[] = [];
  at.answers.current = (request) => {
    const user = textOf(request.messages.find(({ role }) => role === "user"));
    const good = at.codemod(request);
    const [, errors] = /<errors>\n([\s\S]*)\n<\/errors>/.exec(user) ?? [];
    if (!user.startsWith("File: index.js")) return good;
    if (errors !== undefined) heard.push(errors);
    return errors === undefined
      ? { ...good, content: JSON.stringify(spoil(JSON.parse(good.content) as Proposed)) }
      : good;
  };
  return heard;
}

test.each<[string, (proposal: Proposed) => Proposed, RegExp]>([
  ["a path above the tree", (good) => ({ ...good, path: "../outside.js" }), /"\.\.\/outside\.js" was refused/],
  ["an absolute path", (good) => ({ ...good, path: "/tmp/outside.js" }), /absolute/],
  ["git's own folder", (good) => ({ ...good, path: ".git/hooks/post-commit" }), /git's own folder/],
  ["a path through a link", (good) => ({ ...good, path: "link/outside.js" }), /symbolic link/],
  ["another file", (good) => ({ ...good, path: "test.js" }), /only "index\.js" was asked for/],
  ["a shell", (good) => ({ ...good, commands: [["sh", "-c", "touch /tmp/x"]] }), /not among the allowed commands/],
  ["code on a command line", (good) => ({ ...good, commands: [["node", "--eval", "1"]] }), /exactly one file/],
  ["a file above the tree", (good) => ({ ...good, commands: [["node", "../../../x.js"]] }), /does not exist|leaves/],
  ["a text that does not parse", (good) => ({ ...good, text: "export default {" }), /does not parse/],
  ["an import of nothing", (good) => ({ ...good, text: `import './gone.js';\n${good.text}` }), /no module "gone\.js"/],
  ["what others rely on, missing", (good) => ({ ...good, text: "export const other = 1;\n" }), /does not export sum/],
])("refuses %s, tells the model, and takes the next proposal", async (what, spoil, reason) => {
  const repository = at.repository(PACKAGE);
  symlinkSync("/tmp", join(repository, "link"));
  gitIn(repository, "add", "--all");
  gitIn(repository, "commit", "--quiet", "--message", "Link");
  const heard = spoiling(spoil);
  const thread = `spoiled: ${what}`;
  const result = await at.migrate(thread, { repository });
  expect(heard).toEqual([expect.stringMatching(reason)]);
  expect(result.refusals).toEqual([{ path: "index.js", reason: expect.stringMatching(reason) }]);
  expect(result).toMatchObject({ outcome: { status: "delivered" }, testsAfter: { passed: 1, failed: 0 } });
  const changed = gitIn(at.treeOf(thread).repository, "diff", "--name-only", result.base, result.head)
    .trim()
    .split("\n");
  expect(changed).toEqual(["index.js", "lib/add.js", "package.json", "test.js"]);
  const recorded = await at.database.sql<{ n: number }>(
    "select count(*)::int as n from longhaul.steps where thread_id = $1 and name = 'judge-proposal'",
    [thread],
  );
  expect(recorded).toEqual([{ n: 4 }]);
});

test("asks a model that goes on proposing it no third time, and leaves the file as it was", async () => {
  at.answers.current = (request) => {
    const good = at.codemod(request);
    const proposal = JSON.parse(good.content) as Proposed;
    return proposal.path === "index.js" ? { ...good, content: JSON.stringify({ ...proposal, path: "../x.js" }) } : good;
  };
  const result = await at.migrate("stubborn", { repository: at.repository(PACKAGE) });
  expect(result.outcome?.status).toBe("gave-up");
  expect(result.edits.map(({ path }) => path)).not.toContain("index.js");
});

describe("a path", () => {
  const entries = [
    { path: "a.js", mode: "100644" },
    { path: "link", mode: "120000" },
    { path: "sub", mode: "160000" },
  ];
  test.each(["a.js", "lib/new.js", "..a/b.js", "link2/x.js", ".github/x.js"])("%j stays in the tree", (path) => {
    expect(leavesTree(path, entries)).toBeUndefined();
  });
  test.each([
    "",
    "..",
    "../a.js",
    "a/../../b.js",
    "./a.js",
    "a//b.js",
    "/etc/passwd",
    "~/x",
    "C:/x",
    "a\\..\\b",
    "a\0.js",
    "a\n.js",
    ".git/config",
    ".GIT/config",
    "lib/.git/config",
    ".git ./config",
    "git~1/config",
    "link/x.js",
    "link",
    "sub/x.js",
    "node_modules/tape/index.js",
    "x".repeat(2_000),
  ])("%j does not", (path) => {
    expect(leavesTree(path, entries)).toEqual(expect.any(String));
  });
});

test("a command is allowed only if it is Node on a file of the tree", () => {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-allowed-"));
  try {
    mkdirSync(join(folder, "tree"));
    writeFileSync(join(folder, "outside.js"), "");
    writeFileSync(join(folder, "tree/a.js"), "");
    symlinkSync("../outside.js", join(folder, "tree/link.js"));
    const allowed = (...argv: string[]) => refusedCommand(argv, join(folder, "tree"));
    expect(allowed("node", "a.js")).toBeUndefined();
    expect(allowed("node", "--check", "a.js")).toBeUndefined();
    expect(allowed("node", "--test-reporter=tap", "a.js")).toBeUndefined();
    for (const argv of [
      ["bash"],
      ["/bin/node", "a.js"],
      ["node"],
      ["node", "-e", "1"],
      ["node", "--require", "a.js"],
      ["node", "a.js", "b"],
      ["node", "link.js"],
      ["node", "../outside.js"],
      ["node", "gone.js"],
      ["npm", "install"],
      ["git", "push"],
      ["curl", "http://127.0.0.1"],
    ])
      expect(allowed(...argv), argv.join(" ")).toEqual(expect.any(String));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
