// The first write: a repository with the source as its base commit. It is made beside its place and moved there whole.
import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { operation } from "langgraph-longhaul";
import { exists } from "../dependencies.js";
import { classifyWrite, NotApplied } from "../diskFull.js";
import { git, gitLine } from "../git.js";
import { strategy } from "../strategy.js";
import { BASE_BRANCH, WorkTree } from "../workTree.js";
import { fetchCommit, type RepositorySource } from "./localRepository.js";
import { type NpmSource, UnsafeSource, unpackPackage } from "./npmPackage.js";

export type Source = NpmSource | RepositorySource;

export interface NewTree {
  readonly migration: string;
  readonly source: Source;
}

interface TreeReceipt {
  readonly base: string;
  /** Why the source cannot be used; empty where it can. */
  readonly unsafe: string;
}

const TIMEOUT_MS = 90_000;
const SETTLE_MS = 2_000;

export const createWorkTree = operation({
  name: "create-work-tree",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  classify: classifyWrite,
  run: async ({ migration, source }: NewTree, { idempotencyKey }): Promise<TreeReceipt> => {
    const tree = new WorkTree(migration, strategy.name);
    try {
      return { base: (await baseOf(tree, idempotencyKey)) ?? (await create(tree, source, idempotencyKey)), unsafe: "" };
    } catch (error) {
      if (error instanceof UnsafeSource) return { base: "", unsafe: error.message };
      throw error;
    }
  },
  lookup: async ({ idempotencyKey, input }) => {
    const base = await baseOf(new WorkTree(input.migration, strategy.name), idempotencyKey);
    return base === undefined ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: { base, unsafe: "" } };
  },
});

async function baseOf(tree: WorkTree, key: string): Promise<string | undefined> {
  if (!(await exists(tree.repository))) return undefined;
  const [base] = await tree.commitsOf(key);
  if (base === undefined)
    throw new Error(`"${tree.repository}" holds another migration. Move it away, or use another thread.`);
  return base;
}

async function create(tree: WorkTree, source: Source, key: string): Promise<string> {
  const making = join(tree.root, `.tree-${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(making, { recursive: true });
    // Before there is a repository: a tarball that brings its own is refused.
    if (source.kind === "npm") await unpackPackage(source, making);
    await git(making, ["init", "--quiet", `--initial-branch=${BASE_BRANCH}`, "--template="]);
    if (source.kind === "npm") await git(making, ["add", "--all", "--force"]);
    else await fetchCommit(source, making);
    const files = await gitLine(making, ["write-tree"]);
    const title = source.kind === "npm" ? `${source.name} ${source.version}` : `As of ${source.commit}`;
    const base = await gitLine(making, ["commit-tree", files], { input: `${title}\n\nLonghaul-Step: ${key}\n` });
    await git(making, ["update-ref", `refs/heads/${BASE_BRANCH}`, base]);
    await git(making, ["update-ref", `refs/heads/${tree.branch}`, base]);
    await git(making, ["symbolic-ref", "HEAD", `refs/heads/${tree.branch}`]);
    await git(making, ["reset", "--quiet", "--hard"]);
    await rename(making, tree.repository);
    return base;
  } catch (error) {
    if (error instanceof UnsafeSource) throw error;
    throw new NotApplied(
      (await isFull(tree.root)) ? Object.assign(new Error("full", { cause: error }), { code: "ENOSPC" }) : error,
      tree.root,
    );
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/** tar and git say it in many words; the file system says it in one number. */
async function isFull(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: 1e9, bsize: 1 }));
  return bavail * bsize < 64 * 1024;
}
