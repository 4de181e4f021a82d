// A write whose outcome nobody knows, met again. The world is asked first (`lookup`); what it cannot tell, a person
// does. Never a blind second effect: "it did not happen" counts only after the settle time (G1), because a request
// can still be on the wire, and a provider's read side can lag behind its write side.

import { codecOf, LEFT_BY_CONTROL_FLOW, stepOf } from "./attempt.js";
import type { PauseQuestion, StepCall, StepHost } from "./call.js";
import { InputConflictError, OutcomeUnknownError } from "./errors.js";
import type { StepRecord } from "./ledger.js";
import { lookUp, SEVERAL, UNSTORABLE } from "./lookup.js";
import { maxFailures } from "./retry.js";
import { askAboutSibling } from "./sibling.js";

/** What meeting a recorded step leads to. */
export type Met =
  | { readonly next: "replay"; readonly record: StepRecord }
  | { readonly next: "claim"; readonly record: StepRecord; readonly reason: string }
  | { readonly next: "reread" };

/** A clock may run on, a process may be paused between the check and the send: the provider's key must outlive both. */
const PAUSE_MARGIN_MS = 60_000;

/** Meets a step in NEEDS_RECONCILIATION or WAITING_HUMAN: settles it, waits, or asks a person. */
export async function meetDoubt<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<Met> {
  if (record.siblingKey !== undefined && record.doubtSince === undefined) return askAboutSibling(host, record);
  if (record.effectKnown || record.state === "WAITING_HUMAN") return ask(call, host, record);
  const resend = mayResend(call, record);
  if (!resend && call.lookup === undefined) return ask(call, host, record);
  if (record.dueAt !== undefined && record.dueAt > record.readAt) {
    await host.waitUntil(record.dueAt, `whether "${record.name}" happened is asked again`, record.key);
    return { next: "reread" };
  }
  if (resend || call.lookup === undefined) {
    return { next: "claim", record, reason: "idempotent and its key is young: sent again with the same key" };
  }
  const settlement = await lookUp(record, call.lookup, codecOf(call));
  const spent = settlement.to === "READY" && (record.failures >= maxFailures(call.retry) || !host.mayRetry());
  // It surely did not happen, and trying again has been tried: what it failed with is the answer.
  await host.ledger.settle(
    record,
    spent
      ? { ...settlement, to: "FAILED_PERMANENT", reason: `${settlement.reason}; it failed ${record.failures} times` }
      : settlement,
  );
  return { next: "reread" };
}

/** A resend is allowed while the provider surely still knows the key, counted from the first unresolved send (G10). */
function mayResend<O>(call: StepCall<O>, record: StepRecord): boolean {
  const lifetimeMs = call.intent.keyLifetimeMs;
  const firstSend = record.firstUnresolvedSendAt ?? record.doubtSince;
  if (call.idempotent !== true || lifetimeMs === undefined || firstSend === undefined) return false;
  if (record.inputHash !== call.intent.inputHash || record.failures >= maxFailures(call.retry)) return false;
  const ageMs = record.readAt.getTime() - firstSend.getTime();
  return ageMs + call.intent.timeoutMs + PAUSE_MARGIN_MS < lifetimeMs;
}

/** Nobody but a person can tell. */
function ask<O>(call: StepCall<O>, host: StepHost, record: StepRecord): never {
  const question = questionAbout(record, call.lookup !== undefined);
  if (call.onUnknown === "throw") {
    throw new OutcomeUnknownError(question.message, record.key, record.attempt, stepOf(call));
  }
  return host.pause([{ record, question }]);
}

/** What a person is asked about a write whose outcome, or whose receipt, is not known. */
export function questionAbout(record: StepRecord, hasLookup: boolean): PauseQuestion {
  const step = `${record.position.node}/${record.name}`;
  const settle = `longhaul reconcile settle ${record.key}`;
  if (record.effectKnown || record.failure?.code === UNSTORABLE) {
    const message = `The write "${step}" happened, but its output could not be stored: ${record.failure?.message ?? ""} Give its receipt: ${settle} --happened '<json>'`;
    return { kind: "NEEDS_RECONCILIATION", message };
  }
  if (record.failure?.code === SEVERAL) {
    const message = `The write "${step}" happened more than once. ${record.failure.message} Undo what is too much at the provider, then say which stands: ${settle} --happened '<json>' | --write-off --reason …`;
    return { kind: "NEEDS_RECONCILIATION", message };
  }
  const why = record.failure?.code === LEFT_BY_CONTROL_FLOW ? ` ${record.failure.message}` : "";
  const message =
    `Whether the write "${step}" happened is not known, and ${hasLookup ? "its lookup cannot tell" : "it has no lookup"}.${why} ` +
    `Find out, then: ${settle} --happened '<json>' | --did-not-happen | --write-off --reason …`;
  return { kind: "NEEDS_RECONCILIATION", message };
}

/** Another input came to a key that was sent already: keep what is recorded, or fail; a person says which (G17). */
export function meetDrift<O>(call: StepCall<O>, host: StepHost, record: StepRecord, drift: StepRecord["drift"]): void {
  if (drift?.decision === "keep") return;
  const step = `${record.position.node}/${record.name}`;
  const message =
    `The input of the write "${step}" changed since it was first sent: recorded ${record.inputHash}, now ${call.intent.inputHash}. ` +
    "Nothing was sent, and the recorded result was not used for the new input.";
  if (drift?.decision === "fail") {
    throw new InputConflictError(message, { threadId: record.position.threadId, step });
  }
  const question: PauseQuestion = {
    kind: "INPUT_DRIFT",
    message: `${message} Decide: longhaul reconcile settle ${record.key} --keep | --fail`,
    inputHash: call.intent.inputHash,
  };
  host.pause([{ record, question }]);
}
