// Which work tree a node works in: the one of its thread.
import { strategy } from "./strategy.js";
import { migrationName, WorkTree } from "./workTree.js";

interface AtThread {
  readonly executionInfo?: { readonly threadId?: string };
  readonly configurable?: { readonly thread_id?: unknown };
}

export function workTreeOf(runtime: object): WorkTree {
  const { executionInfo, configurable } = runtime as AtThread;
  const threadId = executionInfo?.threadId ?? configurable?.thread_id;
  if (typeof threadId !== "string") throw new Error("A migration needs a thread: its work tree is named after it.");
  return new WorkTree(migrationName(threadId), strategy.name);
}
