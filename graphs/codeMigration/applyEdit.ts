// The write of the graph: one file, one commit. Its receipt is the commit's hash, its lookup whether the history has a
// commit with the step's key, its undo a commit that brings the former text back.
import { operation } from "langgraph-longhaul";
import { classifyWrite } from "./diskFull.js";
import { git } from "./git.js";
import { strategy } from "./strategy.js";
import { WorkTree } from "./workTree.js";

export interface Edit {
  /** The work tree's name. */
  readonly migration: string;
  readonly path: string;
  readonly text: string;
  readonly message: string;
}

export interface EditReceipt {
  readonly commit: string;
}

/** Git answers in milliseconds, on a busy machine in seconds. */
const TIMEOUT_MS = 30_000;
/** A git process outlives its killed parent by less than this. */
const SETTLE_MS = 2_000;

const treeNamed = (name: string): WorkTree => new WorkTree(name, strategy.name);

export const applyEdit = operation({
  name: "apply-edit",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  classify: classifyWrite,
  run: async ({ migration, path, text, message }: Edit, { idempotencyKey }): Promise<EditReceipt> => {
    const tree = treeNamed(migration);
    const mode = (await tree.entries(tree.branch)).find((entry) => entry.path === path)?.mode;
    return { commit: await tree.commit({ path, text, message, ...(mode && { mode }) }, idempotencyKey) };
  },
  lookup: async ({ idempotencyKey, input }) => {
    const [commit] = await treeNamed(input.migration).commitsOf(idempotencyKey);
    return commit === undefined ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: { commit } };
  },
  compensate: async ({ input, receipt }, { idempotencyKey }) => {
    const tree = treeNamed(input.migration);
    const before = (await tree.entries(`${receipt.commit}^`)).find(({ path }) => path === input.path);
    const text = before && (await git(tree.repository, ["cat-file", "blob", `${receipt.commit}^:${input.path}`]));
    const message = `Revert "${input.message}"`;
    await tree.commit({ path: input.path, text, message, ...(before && { mode: before.mode }) }, idempotencyKey);
  },
});
