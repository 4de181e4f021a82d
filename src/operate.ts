// What an operator does to a ledger: settle a step whose outcome is not known, and redrive one that failed. The rules
// are the same for a person as for a lookup; only the actor differs.
import { liftCancel } from "./cancelRun.js";
import { createCodec } from "./core/codec.js";
import { CompensatedError, InvalidOptionError, NotFoundError, type RecordedFailure } from "./core/errors.js";
import { checkId } from "./core/key.js";
import type { StepRecord } from "./core/ledger.js";
import { hasHappened } from "./core/lookup.js";
import { checkOnFailure, compensateThread, isUndo, type SagaOptions, type SagaReport } from "./core/saga.js";
import { type SettledThread, settleThread } from "./core/settleThread.js";
import type { Ledger } from "./langgraph/ledger.js";
import { operateOn } from "./langgraph/operateOn.js";
import { databaseOf } from "./openLedger.js";
import { acknowledgeDuplicates } from "./postgres/lateReceipts.js";
import { decideDrift, settleStep } from "./postgres/outcomes.js";
import type { PooledDatabase } from "./postgres/pool.js";
import { listThreads } from "./postgres/runs.js";
import { findStep, stepsOfThread } from "./postgres/stepRows.js";

export interface SettleRequest {
  readonly idempotencyKey: string;
  /** Who says so; recorded. */
  readonly by: string;
  /**
   * `happened` (with its `receipt`: what the step's function would have returned), `did-not-happen`, `write-off`
   * (never mind: the step fails for good); for another input at a known key `keep` or `fail`; for a write that another
   * branch has done `reuse` or `run-again`; for an effect that happened twice `acknowledge`.
   */
  readonly outcome:
    | "happened"
    | "did-not-happen"
    | "write-off"
    | "keep"
    | "fail"
    | "reuse"
    | "run-again"
    | "acknowledge";
  readonly receipt?: unknown;
  readonly reason?: string;
}

export type SettleAnswer =
  | { readonly result: "settled"; readonly threadId: string }
  /** Too early: a request may still be on its way, or somebody is at it. */
  | { readonly result: "not-yet"; readonly notBefore: Date }
  /** Somebody or something settled it before. */
  | { readonly result: "already-settled"; readonly state: StepRecord["state"] };

/**
 * Records what a person found out about a write whose outcome is not known. The thread is woken in the same
 * transaction; run it again with `null` as input.
 *
 * @throws NotFoundError for an unknown key, InvalidOptionError for an answer that does not fit the question.
 */
export async function settle(ledger: Ledger, request: SettleRequest): Promise<SettleAnswer> {
  const { idempotencyKey, by, outcome } = request;
  if (typeof by !== "string" || by === "") throw new InvalidOptionError("Expected `by` to name who settles the step.");
  if (outcome === "write-off" && !request.reason)
    throw new InvalidOptionError("A write-off needs a `reason`: it gives up an effect that may have happened.");
  const database = await databaseOf(ledger);
  const seen = await findOpen(database, idempotencyKey, by);
  if (outcome === "acknowledge") {
    const known = await acknowledgeDuplicates(database, seen.key, by, request.reason ?? `known to ${by}`);
    return known
      ? { result: "settled", threadId: seen.position.threadId }
      : { result: "already-settled", state: seen.state };
  }
  if (outcome === "keep" || outcome === "fail") return settleDrift(database, seen, outcome, request);
  if (seen.state === "RUNNING" && seen.leaseUntil !== undefined)
    return { result: "not-yet", notBefore: seen.leaseUntil };
  if (seen.state !== "NEEDS_RECONCILIATION" && seen.state !== "WAITING_HUMAN")
    return { result: "already-settled", state: seen.state };
  if (seen.siblingKey !== undefined && seen.attempt === 0) return settleSibling(database, seen, request);
  if (outcome === "reuse" || outcome === "run-again") {
    throw new InvalidOptionError("No other branch has done this write, so there is nothing to reuse or to run again.");
  }
  if (outcome === "did-not-happen") {
    if (hasHappened(seen))
      throw new InvalidOptionError(
        `This write is known to have happened. ${seen.failure?.message ?? ""} Settle it as happened, with the receipt that stands, or write it off.`,
      );
    if (seen.settledFrom !== undefined && seen.settledFrom > seen.readAt)
      return { result: "not-yet", notBefore: seen.settledFrom };
  }
  const reason = request.reason ?? `${outcome}, says ${by}`;
  const settled = await settleStep(database, seen, { ...consequence(request), actor: by, reason, wake: true });
  if (settled) return { result: "settled", threadId: seen.position.threadId };
  const now = await findStep(database, idempotencyKey);
  return { result: "already-settled", state: now?.state ?? seen.state };
}

/** A write that another branch has done: its result serves here too, or the write is done again. */
async function settleSibling(
  database: PooledDatabase,
  seen: StepRecord,
  request: SettleRequest,
): Promise<SettleAnswer> {
  const { by, outcome } = request;
  if (outcome !== "reuse" && outcome !== "run-again") {
    throw new InvalidOptionError("Another branch has done this write. Settle it as `reuse` or `run-again`.");
  }
  const reason = request.reason ?? `${outcome}, says ${by}`;
  const sibling = await findStep(database, seen.siblingKey ?? "");
  if (outcome === "reuse" && sibling?.output === undefined) {
    throw new InvalidOptionError(`The other branch's write has no receipt yet. Settle it first: ${seen.siblingKey}`);
  }
  const change =
    outcome === "reuse"
      ? { to: "SUCCEEDED" as const, output: (await sibling?.output?.read()) ?? "" }
      : { to: "READY" as const };
  const settled = await settleStep(database, seen, { ...change, actor: by, reason, wake: true });
  return settled
    ? { result: "settled", threadId: seen.position.threadId }
    : { result: "already-settled", state: seen.state };
}

function consequence(request: SettleRequest) {
  switch (request.outcome) {
    case "happened":
      return { to: "SUCCEEDED" as const, output: createCodec().encode(request.receipt, "receipt") };
    case "did-not-happen":
      return { to: "READY" as const };
    default: {
      const message = `Written off by ${request.by}: ${request.reason}`;
      return { to: "FAILED_PERMANENT" as const, failure: { name: "WrittenOff", message, code: "WRITTEN_OFF" } };
    }
  }
}

async function settleDrift(
  database: PooledDatabase,
  seen: StepRecord,
  decision: "keep" | "fail",
  request: SettleRequest,
): Promise<SettleAnswer> {
  if (seen.drift === undefined)
    throw new InvalidOptionError("No other input came to this key, so there is nothing to keep or to fail.");
  const decided = await decideDrift(
    database,
    seen.key,
    decision,
    request.by,
    request.reason ?? `${decision}, says ${request.by}`,
  );
  return decided
    ? { result: "settled", threadId: seen.position.threadId }
    : { result: "already-settled", state: seen.state };
}

/** A write whose holder is gone is in doubt, though no run has met it yet. */
async function findOpen(database: PooledDatabase, key: string, by: string): Promise<StepRecord> {
  if (!/^[0-9a-f]{64}$/.test(key))
    throw new InvalidOptionError(
      "Expected a step's key: 64 hexadecimal digits, as `longhaul reconcile list` prints them.",
    );
  const seen = await findStep(database, key);
  if (seen === undefined) throw new NotFoundError(`No step has the key ${key}.`);
  if (seen.state !== "RUNNING" || seen.effect !== "write" || seen.leaseLive) return seen;
  const failure = { name: "OutcomeUnknown", message: "The process ended between intent and receipt." };
  await settleStep(database, seen, {
    to: "NEEDS_RECONCILIATION",
    actor: by,
    reason: "the last holder is gone and left no receipt",
    failure,
  });
  return (await findStep(database, key)) ?? seen;
}

/**
 * Lets a thread go on from where it failed, after the cause is mended, or from where it was cancelled: its steps that failed
 * for good or were cancelled become ready, and the thread is woken. Every recorded success stays. Answers with the keys of
 * those steps, none when nothing had failed.
 *
 * @throws NotFoundError for a thread that the ledger does not know, CompensatedError for one that is being undone,
 * ThreadBusyError for one whose cancelled run has not stopped yet.
 */
export async function redrive(
  ledger: Ledger,
  request: { threadId: string; by: string; reason?: string },
): Promise<string[]> {
  const { threadId, by, reason = "redrive" } = request;
  const database = await databaseOf(ledger);
  await assertKnown(database, threadId);
  const records = (await stepsOfThread(database, threadId)).map(({ record }) => record);
  if (records.some(({ state }) => state === "COMPENSATING" || state === "COMPENSATED")) {
    throw new CompensatedError(
      `Thread "${threadId}" is being undone, or was: it takes no new write. Call longhaul compensate again for what is left.`,
      { threadId },
    );
  }
  const redriven: string[] = [...((await liftCancel(database, threadId, by, reason)) ?? [])];
  for (const record of records.filter(mayRunAgain)) {
    if (await settleStep(database, record, { to: "READY", actor: by, reason, wake: true })) redriven.push(record.key);
  }
  return redriven;
}

/**
 * Asks the world about every write of a thread whose outcome is not known, without running its graph and without waiting.
 * What the lookups cannot tell stays open: for a person, or, with `dueAt`, until it is asked again.
 *
 * @param graph a durable graph that declares the thread's operations and tools
 * @throws NotFoundError for a thread that the ledger does not know, ThreadBusyError while a run has it.
 */
export async function reconcile(ledger: Ledger, graph: object, request: { threadId: string }): Promise<SettledThread> {
  await assertKnown(await databaseOf(ledger), request.threadId);
  return operateOn(ledger, graph, request.threadId, async (host, effects) => ({
    result: await settleThread(host, effects, { once: true }),
  }));
}

/**
 * Undoes what a thread did, newest first, and closes it to new writes. Call it again once the cause of a failed undo is
 * mended: what was undone stays undone. A thread that is undone in part is shown as failed by `longhaul runs`.
 *
 * @param graph a durable graph that declares the thread's operations and tools
 * @throws NotFoundError for a thread that the ledger does not know, ThreadBusyError while a run has it, InvalidOptionError
 * when it has done an operation that the graph does not declare, OutcomeUnknownError when a write or an undo must be settled first.
 */
export async function compensate(
  ledger: Ledger,
  graph: object,
  request: { threadId: string } & SagaOptions,
): Promise<SagaReport> {
  const { threadId, onFailure } = request;
  checkOnFailure(onFailure);
  const database = await databaseOf(ledger);
  await assertKnown(database, threadId);
  return operateOn(ledger, graph, threadId, async (host, effects) => {
    // To ask again is to say that the cause is mended.
    for (const { record } of await stepsOfThread(database, threadId)) {
      if (isUndo(record) && mayRunAgain(record))
        await settleStep(database, record, { to: "READY", actor: "saga", reason: "undone again" });
    }
    const report = await compensateThread(host, effects, request);
    return { result: report, leaves: report.complete ? { as: "done" } : { as: "failed", failure: incomplete(report) } };
  });
}

/** How `longhaul runs` shows a thread that is undone in part. */
function incomplete({ failed }: SagaReport): RecordedFailure {
  const names = failed.map(({ name }) => name).join(", ");
  return { name: "CompensationIncomplete", message: `not undone: ${names}` };
}

/** What a person gave up may have happened: only a person's new word may start it again. */
function mayRunAgain({ state, failure }: StepRecord): boolean {
  return state === "FAILED_PERMANENT" && failure?.code !== "WRITTEN_OFF";
}

/** A misspelt thread has nothing to settle or undo: to say that all is done would be a lie. */
async function assertKnown(database: PooledDatabase, threadId: string): Promise<void> {
  const [thread] = await listThreads(database, { threadId: checkId("threadId", threadId), limit: 1 });
  if (thread === undefined) throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
}
