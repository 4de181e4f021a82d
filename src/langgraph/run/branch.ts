// On which branch of a forked thread a run is at work, and whether a thread may be forked now.
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Branch } from "../../core/branch.js";
import { OutcomeUnknownError } from "../../core/errors.js";
import type { StepInDoubt } from "../../core/ledger.js";
import type { Compiled, RunOptions } from "../compiled.js";
import type { Place } from "../place.js";
import type { Run } from "./run.js";

/** The fork that a place descends from, the last one where there are several; undefined where there is none. */
export function branchAt({ run, position, bases }: Place): Promise<Branch | undefined> {
  const root = bases.find(([ns]) => ns === "")?.[1];
  if (!run.forked || root === undefined) return Promise.resolve(undefined);
  // A run goes on from where it began, so all of it is on one branch.
  run.branch ??= find(run, position.threadId, root);
  return run.branch;
}

async function find(run: Run, threadId: string, root: string): Promise<Branch | undefined> {
  for (const fork of await run.forks()) {
    if (fork.checkpointId === root) return fork;
    if ((await run.saver?.sourceAfter(threadId, "", fork.checkpointId, root)) !== undefined) return fork;
  }
  return undefined;
}

/**
 * Going back to an older checkpoint leaves what came after it. While one of those writes may have happened, the branch could
 * not know what to ask about: it is settled first.
 *
 * @throws OutcomeUnknownError that names the write.
 */
export async function refuseForkInDoubt(graph: Compiled, run: Run, options: RunOptions): Promise<void> {
  const addressed: unknown = options.configurable?.["checkpoint_id"];
  if (addressed === undefined) return;
  const { threadId } = run;
  const saver = graph.checkpointer as BaseCheckpointSaver;
  const head = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
  if (head === undefined || head.checkpoint.id === addressed) return;
  const doubt = await run.steps.inDoubt(threadId);
  if (doubt === undefined) return;
  throw forkInDoubt(threadId, doubt);
}

export function forkInDoubt(threadId: string, { key, node, name, attempt }: StepInDoubt): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `Thread "${threadId}" cannot be forked now: the write "${node}/${name}" may have happened, and nobody knows. Settle it first: longhaul reconcile settle ${key}`,
    key,
    attempt,
    { threadId, step: `${node}/${name}` },
  );
}
