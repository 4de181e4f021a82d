// A write whose outcome nobody knows, met again. The world is asked first (`lookup`); what it cannot tell, a person
// does. Never a blind second effect: "it did not happen" counts only after the settle time (G1), because a request
// can still be on the wire, and a provider's read side can lag behind its write side.

import { codecOf } from "./attempt.js";
import type { StepCall, StepHost } from "./call.js";
import { InputConflictError, OutcomeUnknownError, UnserializableError } from "./errors.js";
import type { Settlement, StepRecord } from "./ledger.js";
import type { LookupAnswer } from "./lookup.js";
import { maxFailures } from "./retry.js";
import { askAboutSibling } from "./sibling.js";

/** What meeting a recorded step leads to. */
export type Met =
  | { readonly next: "replay"; readonly record: StepRecord }
  | { readonly next: "claim"; readonly record: StepRecord; readonly reason: string }
  | { readonly next: "reread" };

/** A lookup is one request; a provider that needs longer than this to answer one is not answering. */
const LOOKUP_TIMEOUT_MS = 30_000;
/** After this many lookups that failed, more of the same teaches nothing: a person decides. */
const MAX_LOOKUPS = 10;
/** A clock may run on, a process may be paused between the check and the send: the provider's key must outlive both. */
const PAUSE_MARGIN_MS = 60_000;

/** Meets a step in NEEDS_RECONCILIATION or WAITING_HUMAN: settles it, waits, or asks a person. */
export async function meetDoubt<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<Met> {
  if (record.siblingKey !== undefined && record.doubtSince === undefined) return askAboutSibling(host, record);
  if (record.effectKnown || record.state === "WAITING_HUMAN") return ask(call, host, record);
  const resend = mayResend(call, record);
  if (!resend && call.lookup === undefined) return ask(call, host, record);
  if (record.dueAt !== undefined && record.dueAt > record.readAt) {
    await host.waitUntil(record.dueAt, "reconcile", record.key);
    return { next: "reread" };
  }
  if (resend) return { next: "claim", record, reason: "idempotent and its key is young: sent again with the same key" };
  await host.ledger.settle(record, await lookUp(call, record));
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

/** Asks the world once, with the RECORDED input, and says what that settles. */
async function lookUp<O>(call: StepCall<O>, record: StepRecord): Promise<Settlement> {
  const actor = "lookup";
  let answer: LookupAnswer;
  try {
    answer = await askWorld(call, record);
  } catch (error) {
    return lookupFailed(record, error);
  }
  switch (answer.outcome) {
    case "happened":
      return storeReceipt(call, answer.receipt);
    case "did-not-happen": {
      const waitMs = (record.settledFrom ?? record.readAt).getTime() - record.readAt.getTime();
      return waitMs <= 0
        ? { to: "READY", actor, reason: "it did not happen, and the settle time has passed" }
        : { to: "NEEDS_RECONCILIATION", actor, reason: "it did not happen yet", dueInMs: waitMs, wake: true };
    }
    case "several":
      return { to: "WAITING_HUMAN", actor, reason: `it happened ${answer.receipts.length} times` };
    case "cannot-tell":
      return { to: "WAITING_HUMAN", actor, reason: "the lookup cannot tell" };
  }
}

async function askWorld<O>(call: StepCall<O>, record: StepRecord): Promise<LookupAnswer> {
  if (call.lookup === undefined) return { outcome: "cannot-tell" };
  const signal = AbortSignal.timeout(LOOKUP_TIMEOUT_MS);
  const input: unknown = JSON.parse(record.input ?? "null");
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return await Promise.race([call.lookup({ idempotencyKey: record.key, input, signal }), aborted]);
}

function lookupFailed(record: StepRecord, error: unknown): Settlement {
  const name = error instanceof Error ? error.name : "error";
  if (record.lookups + 1 >= MAX_LOOKUPS) {
    return {
      to: "WAITING_HUMAN",
      actor: "lookup",
      reason: `${MAX_LOOKUPS} lookups failed, the last with ${name}`,
      countLookup: true,
    };
  }
  const dueInMs = Math.min(1000 * 2 ** record.lookups, 15 * 60_000);
  return {
    to: "NEEDS_RECONCILIATION",
    actor: "lookup",
    reason: `the lookup failed with ${name}`,
    dueInMs,
    countLookup: true,
    wake: true,
  };
}

function storeReceipt<O>(call: StepCall<O>, receipt: unknown): Settlement {
  const actor = "lookup";
  try {
    const output = codecOf(call).encode(receipt, `receipt of ${call.intent.name}`);
    return { to: "SUCCEEDED", actor, reason: "it happened", output };
  } catch (error) {
    if (!(error instanceof UnserializableError)) throw error;
    return { to: "WAITING_HUMAN", actor, reason: `it happened, but ${error.message}` };
  }
}

/** Nobody but a person can tell. */
function ask<O>(call: StepCall<O>, host: StepHost, record: StepRecord): never {
  const step = `${record.position.node}/${record.name}`;
  const message = record.effectKnown
    ? `The write "${step}" happened, but its output could not be stored: ${record.failure?.message ?? ""} ` +
      `Give its receipt: longhaul reconcile settle ${record.key} --happened '<json>'`
    : `Whether the write "${step}" happened is not known, and ${call.lookup === undefined ? "it has no lookup" : "its lookup cannot tell"}. ` +
      `Find out, then: longhaul reconcile settle ${record.key} --happened '<json>' | --did-not-happen | --write-off --reason …`;
  if (call.onUnknown === "throw") {
    throw new OutcomeUnknownError(message, record.key, record.attempt, { threadId: record.position.threadId, step });
  }
  return host.pause(record, { kind: "NEEDS_RECONCILIATION", message });
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
  host.pause(record, {
    kind: "INPUT_DRIFT",
    message: `${message} Decide: longhaul reconcile settle ${record.key} --keep | --fail`,
    inputHash: call.intent.inputHash,
  });
}
