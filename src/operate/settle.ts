// Settling a step whose outcome is not known, as a person found it. The rules are the same for a person as for a lookup; only
// the actor differs.

import { createCodec } from "../core/codec.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import type { StepRecord } from "../core/ledger.js";
import { hasHappened } from "../core/lookup.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { acknowledgeDuplicates } from "../postgres/lateReceipts.js";
import { decideDrift, settleStep } from "../postgres/outcomes.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { findStep } from "../postgres/stepRows.js";

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
