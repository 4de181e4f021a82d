// Stopping a thread, wherever its run is at work, and letting it go on. What the ledger then says is what is so: a run that
// has not stopped yet is "cancel requested", and an effect that landed all the same is recorded as one.
import type { CancelRequest } from "../core/cancel.js";
import { CancelledError, InvalidOptionError, NotFoundError, ThreadBusyError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { isUndo } from "../core/saga.js";
import type { Ledger } from "../langgraph/ledger.js";
import { liveRunsOf } from "../langgraph/run/liveRuns.js";
import { databaseOf } from "../openLedger.js";
import { liftCancel as lift, requestCancel } from "../postgres/cancels.js";
import { BEING_DELETED } from "../postgres/deletions.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { finishIfFree, listThreads, type ThreadSummary } from "../postgres/runs.js";
import { stepsOfThread } from "../postgres/stepRows.js";

export interface CancelAnswer {
  /**
   * `cancelled`: nobody is at work on it any more. `cancel requested`: a run is, and is being told; it starts no step and stores
   * no checkpoint any more. `already ended`: the graph had come to its end, and nothing was changed.
   */
  readonly result: "cancelled" | "cancel requested" | "already ended";
  /** False when somebody had cancelled it before: then `cancel` is theirs. */
  readonly applied: boolean;
  readonly cancel: CancelRequest | undefined;
  /** Keys of the writes that stand: `compensate` undoes them. */
  readonly committed: readonly string[];
  /** Keys of the writes that may have happened: they are settled as ever. */
  readonly inDoubt: readonly string[];
}

/**
 * Cancels a thread. From its commit on no step is claimed and no checkpoint is stored, whichever process runs the thread; the
 * signal of the step that is under way fires at once in this process, and in another one with its next renewal, a third of
 * `leaseMs` later at most. The run leaves with `drainReason(error).kind === "cancelled"`, and later runs are refused with
 * CancelledError until `redrive` lifts the cancel. JavaScript cannot be stopped: what a step has sent may still happen, and
 * is then recorded, or asked about.
 *
 * Durable graphs that it runs on threads of their own are cancelled with it.
 *
 * @throws NotFoundError for a thread that the ledger does not know.
 * @example
 * await cancelRun(ledger, { threadId: "nightly", by: "ann", reason: "wrong customer" });
 */
export async function cancelRun(
  ledger: Ledger,
  request: { threadId: string; by: string; reason?: string },
): Promise<CancelAnswer> {
  const { by, reason } = request;
  const threadId = checkId("threadId", request.threadId);
  if (typeof by !== "string" || by === "")
    throw new InvalidOptionError("Expected `by` to name who cancels the thread.");
  if (reason !== undefined && typeof reason !== "string")
    throw new InvalidOptionError("Expected `reason` to be a text.");
  const database = await databaseOf(ledger);
  const asked = await requestCancel(database, threadId, by, reason === "" ? undefined : reason);
  // Also when it was cancelled before: its process may have died since.
  for (const id of new Set([threadId, ...asked])) {
    const { cancel } = await threadNamed(database, id);
    if (cancel === undefined) continue;
    liveRunsOf(ledger).cancel(id, cancel);
    await finishIfFree(database, id);
  }
  const thread = await threadNamed(database, threadId);
  return { ...resultOf(thread), applied: asked.includes(threadId), ...(await writesOf(database, threadId)) };
}

function resultOf({ state, cancel }: ThreadSummary): Pick<CancelAnswer, "result" | "cancel"> {
  if (cancel === undefined) return { result: "already ended", cancel };
  return { result: state === "cancel requested" ? "cancel requested" : "cancelled", cancel };
}

async function writesOf(
  database: PooledDatabase,
  threadId: string,
): Promise<Pick<CancelAnswer, "committed" | "inDoubt">> {
  const records = (await stepsOfThread(database, threadId)).map(({ record }) => record);
  const writes = records.filter((record) => record.effect === "write" && !isUndo(record));
  return {
    committed: writes.filter(({ state }) => state === "SUCCEEDED").map(({ key }) => key),
    inDoubt: writes
      .filter(({ state, doubtSince }) => state === "RUNNING" || doubtSince !== undefined)
      .map(({ key }) => key),
  };
}

async function threadNamed(database: PooledDatabase, threadId: string): Promise<ThreadSummary> {
  const [thread] = await listThreads(database, { threadId, limit: 1 });
  if (thread === undefined) throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
  return thread;
}

/** Lets a cancelled thread go on; answers with the steps that are ready again, undefined when it is not cancelled. */
export async function liftCancel(
  database: PooledDatabase,
  threadId: string,
  by: string,
  reason: string,
): Promise<string[] | undefined> {
  const { cancel } = await threadNamed(database, threadId);
  if (cancel === undefined) return undefined;
  await finishIfFree(database, threadId);
  const ready = await lift(database, threadId, by, reason);
  if (ready !== undefined) return ready;
  if (cancel.reason === BEING_DELETED)
    throw new CancelledError(`Thread "${threadId}" is being deleted, by ${cancel.by}. That is not taken back.`, {
      threadId,
    });
  throw new ThreadBusyError(
    `Thread "${threadId}" was cancelled by ${cancel.by}, and its run has not stopped yet. Let it go on when it has: longhaul runs`,
    { threadId },
  );
}
