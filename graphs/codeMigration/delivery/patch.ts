// The migration as a file for `git am`. It gets its name when it is whole.
import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { operation } from "langgraph-longhaul";
import { classifyWrite, NotApplied } from "../diskFull.js";
import { git } from "../git.js";
import { strategy } from "../strategy.js";
import { WorkTree } from "../workTree.js";

export interface PatchOf {
  readonly migration: string;
  readonly base: string;
  readonly head: string;
}

const TIMEOUT_MS = 60_000;
const SETTLE_MS = 2_000;

export const writePatch = operation({
  name: "write-patch",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  classify: classifyWrite,
  run: async ({ migration, base, head }: PatchOf) => {
    const tree = new WorkTree(migration, strategy.name);
    const path = patchPath(migration);
    try {
      const text = await patchText(tree, base, head);
      await writeWhole(path, text);
      await git(tree.repository, ["reset", "--quiet", "--hard", head]);
    } catch (error) {
      throw new NotApplied(error, tree.root);
    }
    return { path };
  },
  lookup: async ({ input: { migration, base, head } }) => {
    const path = patchPath(migration);
    const there = await readFile(path, "utf8").catch(() => undefined);
    const whole =
      there !== undefined && there === (await patchText(new WorkTree(migration, strategy.name), base, head));
    return whole ? { outcome: "happened", receipt: { path } } : { outcome: "did-not-happen" };
  },
  compensate: async ({ receipt }) => rm(receipt.path, { force: true }),
});

function patchPath(migration: string): string {
  return join(new WorkTree(migration, strategy.name).root, `${strategy.name}.patch`);
}

function patchText(tree: WorkTree, base: string, head: string): Promise<string> {
  return git(tree.repository, ["format-patch", "--stdout", "--no-signature", "--binary", `${base}..${head}`]);
}

async function writeWhole(path: string, text: string): Promise<void> {
  const part = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    const file = await open(part, "wx");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
  } finally {
    await rm(part, { force: true });
  }
}
