// Deleting a thread for good: its checkpoints, its steps with what went in and came out, its approvals, its budgets.
import { purgeThread } from "../checkpoint/index.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import type { Ledger } from "../langgraph/ledger.js";
import { liveRunsOf } from "../langgraph/run/liveRuns.js";
import { databaseOf } from "../openLedger.js";
import { innerThreadsOf, requestDeletion } from "../postgres/deletions.js";
import { listThreads } from "../postgres/runs.js";
import { sweepArtifactsOf } from "../sweep/artifacts.js";

export interface DeleteAnswer {
  /**
   * `deleted`: nothing of it is left but what is kept for audit. `waits`: a run still has it, or a write of it is in doubt; it
   * takes no run any more, and whoever sweeps deletes it when that is over.
   */
  readonly result: "deleted" | "waits";
  /** False when it had been deleted before. */
  readonly applied: boolean;
  /** A run still has it, and is being told to stop. */
  readonly running: boolean;
  /** Keys of the writes that must be settled first: `settle`, `reconcile`, `longhaul reconcile list`. */
  readonly inDoubt: readonly string[];
  /** How many of its writes the table `deleted_effects` keeps: name, state and times, and nothing that went in or out. */
  readonly effectsKept: number;
  /** Threads that ran inside it. They are threads of their own, and stay until they are deleted too. */
  readonly innerThreads: readonly string[];
}

/**
 * Deletes a thread, for good. It is cancelled first; its rows go in one transaction as soon as no run has it and none of its
 * writes is in doubt, at once when nothing is. A run that comes back late can store and claim nothing. The id can be used
 * again: the new thread has new keys, so a provider does not take its writes for the old ones. An event that had started the
 * thread stays known, and starts nothing when it is delivered again.
 *
 * @param request.by who wants it; kept with the id
 * @throws NotFoundError for a thread that the ledger does not know.
 * @example
 * const { result, inDoubt } = await deleteThread(ledger, { threadId: "user-42", by: "ann" });
 */
export async function deleteThread(ledger: Ledger, request: { threadId: string; by: string }): Promise<DeleteAnswer> {
  knownOptions("deleteThread", request, ["threadId", "by"]);
  const threadId = checkId("threadId", request.threadId);
  const { by } = request;
  if (typeof by !== "string" || by === "")
    throw new InvalidOptionError("Expected `by` to name who deletes the thread.");
  const database = await databaseOf(ledger);
  const innerThreads = await innerThreadsOf(database, threadId);
  const found = await requestDeletion(database, threadId, by);
  if (found === "unknown") throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
  const none = { running: false, inDoubt: [], effectsKept: 0, innerThreads };
  if (found === "gone") return { result: "deleted", applied: false, ...none };
  const [thread] = await listThreads(database, { threadId, limit: 1 });
  if (thread?.cancel !== undefined) liveRunsOf(ledger).cancel(threadId, thread.cancel);
  const { purged, ...answer } = await purgeThread(database, threadId);
  // Its artifacts go too, unless others keep them. A store that is away is swept when it is back.
  if (purged) await sweepArtifactsOf(database).catch(() => undefined);
  return { result: purged ? "deleted" : "waits", applied: true, ...none, ...answer };
}
