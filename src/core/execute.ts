// Runs one step: claim, run, record. Whatever moment the process dies at, the next run finds this:
//
//   we die                                  the ledger says        the next run
//   before the intent commits               nothing                runs it
//   after the intent, before the effect     RUNNING, lease over    looks up: did not happen and settled, so runs it
//   after the effect, before the receipt    RUNNING, lease over    looks up: happened, so stores its receipt
//   the same, without a lookup              NEEDS_RECONCILIATION   waits for a person
//   the same, idempotent and the key young  RUNNING, lease over    sends again with the same key
//   a read in flight                        nothing                runs it again
//   a model call in flight                  RUNNING, lease over    runs it again
//   after the receipt                       SUCCEEDED              returns the stored output
//
// A throw is not a "no", and a lease cannot stop a paused process from acting: only the provider's own deduplication
// can. That is why the key goes to the provider, and why a late success is kept as evidence.
import { randomUUID } from "node:crypto";
import { type Codec, createCodec } from "./codec.js";
import { runInStep, type StepContext } from "./context.js";
import { CancelledError, CompensatedError, StepFailedError, UnserializableError } from "./errors.js";
import { classify, recordFailure } from "./failure.js";
import { holdLease, type Moment, moment } from "./lease.js";
import type { Claim, Outcome, RunTicket, StepEvent, StepIntent, StepLedger, StepRecord } from "./ledger.js";
import { type Lookup, meetDoubt, meetDrift } from "./reconcile.js";
import { backoffMs, MAX_FAILURES } from "./retry.js";
import type { Usage } from "./step.js";

/** One call of one step. */
export interface StepCall<O> {
  readonly intent: StepIntent;
  readonly run: (context: StepContext) => Promise<O>;
  readonly lookup?: Lookup | undefined;
  /** The provider deduplicates by key for as long as `intent.keyLifetimeMs`. */
  readonly idempotent?: boolean;
  /** Read failures are tried again here; false where the layer below does it already. */
  readonly retryReads?: boolean;
  readonly onUnknown?: "pause" | "throw" | undefined;
  readonly codec?: Codec;
  readonly usageOf?: (output: O) => Usage | undefined;
}

/** What the core needs from the graph runtime around it. */
export interface StepHost {
  readonly ledger: StepLedger;
  readonly ticket: RunTicket;
  /** Aborted by cancel and by losing the thread; no step starts after that (G12). */
  readonly signal: AbortSignal;
  /** Resolves when every checkpoint that this position stands on is stored (G5). */
  barrier(): Promise<void>;
  /** Leaves the graph until a person has answered. */
  pause(record: StepRecord, question: PauseQuestion): never;
  /** Waits for a time, in the process when it is near, else leaves the graph until then. */
  waitUntil(dueAt: Date, reason: string, key: string): Promise<void>;
  /** Leaves the graph because this run has lost its thread. */
  lost(): never;
  /** Throws when the run was lost or aborted. */
  assertLive(): void;
  isControlFlow(error: unknown): boolean;
  onStep?: ((event: StepEvent) => void) | undefined;
}

export interface PauseQuestion {
  readonly kind: "NEEDS_RECONCILIATION" | "INPUT_DRIFT";
  readonly message: string;
  readonly inputHash?: string;
}

const exact = createCodec();

/** Runs a step to its stored output, or leaves the graph with what must happen first. */
export async function executeStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  host.assertLive();
  await host.barrier();
  return call.intent.effect === "read" && call.intent.kind !== "llm" ? readStep(call, host) : claimedStep(call, host);
}

/** A read needs no intent: its row is written with its result, in one transaction. */
async function readStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  const { intent } = call;
  const known = await host.ledger.find(intent.key);
  if (known?.output !== undefined) return replay(call, host, known);
  for (let failures = 1; ; failures++) {
    try {
      const value = await callRun(call, host, 1).outcome;
      const output = (call.codec ?? exact).encode(value, `output of ${intent.name}`);
      const stored = await host.ledger.recordRead(host.ticket, intent, output);
      if ("lost" in stored) host.lost();
      announce("recorded", call, host, undefined);
      return (call.codec ?? exact).decode(stored.output) as O;
    } catch (error) {
      if (host.isControlFlow(error) || error instanceof UnserializableError) throw error;
      const again = call.retryReads !== false && classify(error) !== "permanent" && failures < MAX_FAILURES;
      if (!again || host.signal.aborted) throw error;
      const now = await host.ledger.now();
      await host.waitUntil(new Date(now.getTime() + backoffMs(failures, error)), "retry", intent.key);
      host.assertLive();
    }
  }
}

/** A write or a model call: intent, call, receipt. */
async function claimedStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  const { ledger, ticket } = host;
  // A lease counts from before the statement that grants it was sent (G29).
  let asked = moment();
  let answer = await ledger.begin(ticket, call.intent, randomUUID());
  for (;;) {
    host.assertLive();
    if ("lost" in answer) host.lost();
    if ("claim" in answer) {
      const done = await attempt(call, host, answer.claim, asked);
      if (done !== AGAIN) return done.value;
      answer = await reread(call, host);
      continue;
    }
    const met = await meet(call, host, answer.existing);
    if (met.next === "replay") return replay(call, host, met.record);
    asked = moment();
    answer =
      met.next === "claim"
        ? await ledger.claimAgain(ticket, met.record, call.intent, randomUUID(), met.reason)
        : await reread(call, host);
  }
}

async function reread<O>(call: StepCall<O>, host: StepHost): Promise<{ existing: StepRecord }> {
  const existing = await host.ledger.find(call.intent.key);
  if (existing === undefined) throw new CancelledError(`The record of step "${call.intent.name}" was deleted while it was running.`);
  return { existing };
}

/** What meeting a recorded step leads to. */
type Met =
  | { readonly next: "replay"; readonly record: StepRecord }
  | { readonly next: "claim"; readonly record: StepRecord; readonly reason: string }
  | { readonly next: "reread" };

/** A recorded step met again: decides by its state what this run does with it. */
async function meet<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<Met> {
  const { intent } = call;
  switch (record.state) {
    case "SUCCEEDED":
      if (record.inputHash !== intent.inputHash) meetDrift(call, host, record, await noteDrift(call, host, record));
      return { next: "replay", record };
    case "READY":
      return { next: "claim", record, reason: record.attempt === 0 ? "first claim" : "runs again" };
    case "RETRY_SCHEDULED":
      if (record.dueAt !== undefined && record.dueAt > record.readAt) {
        await host.waitUntil(record.dueAt, "retry", intent.key);
        return { next: "reread" };
      }
      return { next: "claim", record, reason: "retry is due" };
    case "RUNNING":
      return meetRunning(call, host, record);
    case "NEEDS_RECONCILIATION":
    case "WAITING_HUMAN":
      return meetDoubt(call, host, record);
    case "FAILED_PERMANENT":
      throw new StepFailedError(record.failure ?? { name: "StepFailedError", message: `Step "${intent.name}" failed.` }, where(call));
    case "COMPENSATING":
    case "COMPENSATED":
      throw new CompensatedError(`Step "${intent.name}" was undone; its result no longer stands.`, where(call));
    case "CANCELLED":
      throw new CancelledError(`Step "${intent.name}" was cancelled.`, where(call));
  }
}

async function noteDrift<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<StepRecord["drift"]> {
  if (record.drift?.inputHash === call.intent.inputHash) return record.drift;
  await host.ledger.noteDrift(record, call.intent.inputHash);
  return { inputHash: call.intent.inputHash, decision: undefined };
}

/** Somebody claimed it and did not come back, or has not yet. */
async function meetRunning<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<Met> {
  if (record.leaseLive && record.leaseUntil !== undefined) {
    await host.waitUntil(record.leaseUntil, "the step is running elsewhere", record.key);
    return { next: "reread" };
  }
  if (record.kind === "llm") return { next: "claim", record, reason: "the last holder is gone" };
  await host.ledger.settle(record, {
    to: "NEEDS_RECONCILIATION",
    actor: "takeover",
    reason: "the last holder is gone and left no receipt",
    failure: { name: "OutcomeUnknown", message: "The process ended between intent and receipt." },
  });
  return { next: "reread" };
}

const AGAIN = Symbol("again");

/** One attempt, claimed: run it under its lease and record what came of it. */
async function attempt<O>(call: StepCall<O>, host: StepHost, claim: Claim, grantedAt: Moment): Promise<{ value: O } | typeof AGAIN> {
  const { intent } = call;
  const controller = new AbortController();
  const lease = holdLease({
    leaseMs: intent.leaseMs,
    grantedAt,
    renew: () => host.ledger.renew(claim, intent.leaseMs),
    onLost: (error) => controller.abort(error),
    what: `attempt ${claim.attempt} of step "${intent.name}"`,
  });
  const { outcome, started } = callRun(call, host, claim.attempt, controller.signal);
  try {
    return await recordSuccess(call, host, claim, await outcome);
  } catch (error) {
    return await recordThrow(call, host, claim, error, started);
  } finally {
    lease.stop();
  }
}

async function recordSuccess<O>(call: StepCall<O>, host: StepHost, claim: Claim, value: O): Promise<{ value: O } | typeof AGAIN> {
  const codec = call.codec ?? exact;
  let output: string;
  try {
    output = codec.encode(value, `output of ${call.intent.name}`);
  } catch (error) {
    if (call.intent.effect === "read") throw error;
    await host.ledger.record(claim, { to: "NEEDS_RECONCILIATION", failure: recordFailure(error), effectKnown: true });
    return AGAIN;
  }
  const usage = call.usageOf?.(value);
  const answer = await host.ledger.record(claim, { to: "SUCCEEDED", output, usage });
  if (answer === "fenced") {
    await host.ledger.recordLateSuccess(claim, output);
    return AGAIN;
  }
  announce("recorded", call, host, usage);
  return { value: codec.decode(output) as O };
}

async function recordThrow<O>(
  call: StepCall<O>,
  host: StepHost,
  claim: Claim,
  error: unknown,
  started: Promise<O>,
): Promise<typeof AGAIN> {
  const outcome = await outcomeOf(call, host, error);
  await host.ledger.record(claim, outcome);
  if (outcome.to === "NEEDS_RECONCILIATION") keepLateSuccess(call, host, claim, started);
  if (outcome.to === "FAILED_PERMANENT") throw new StepFailedError(outcome.failure, { ...where(call), cause: error });
  if (outcome.to === "READY") throw error;
  return AGAIN;
}

/** Which state a thrown error leads to. A write in doubt never fails: no error is a "no" while it may have happened. */
async function outcomeOf<O>(call: StepCall<O>, host: StepHost, error: unknown): Promise<Outcome> {
  const { intent } = call;
  const failure = recordFailure(error);
  if (intent.effect === "read") return { to: "READY", reason: host.isControlFlow(error) ? "control flow" : "failed", failure };
  if (host.isControlFlow(error)) {
    const message = `Step "${intent.name}" was left by an interrupt, a Command or a drain inside its run, so it may have been sent. Ask before the step, not inside it.`;
    return { to: "NEEDS_RECONCILIATION", failure: { name: failure.name, message } };
  }
  const seen = await host.ledger.find(intent.key);
  if (seen?.doubtSince !== undefined) return { to: "NEEDS_RECONCILIATION", failure };
  const verdict = classify(error);
  if (verdict === "permanent") return { to: "FAILED_PERMANENT", failure };
  if (verdict === "unknown-sent") return { to: "NEEDS_RECONCILIATION", failure };
  const failures = (seen?.failures ?? 0) + 1;
  if (failures >= MAX_FAILURES) return { to: "FAILED_PERMANENT", failure };
  return { to: "RETRY_SCHEDULED", dueInMs: backoffMs(failures, error), failure };
}

/** The attempt was given up, but its code still runs: should it succeed after all, that is evidence. */
function keepLateSuccess<O>(call: StepCall<O>, host: StepHost, claim: Claim, started: Promise<O>): void {
  started.then(
    (value) => host.ledger.recordLateSuccess(claim, (call.codec ?? exact).encode(value)),
    () => undefined,
  ).catch(() => undefined);
}

/** Calls `run` under its timeout. `started` is the run itself, which JavaScript cannot stop. */
function callRun<O>(call: StepCall<O>, host: StepHost, attemptNumber: number, lost?: AbortSignal): { outcome: Promise<O>; started: Promise<O> } {
  const { intent } = call;
  const timeout = new AbortController();
  const signals = [host.signal, timeout.signal, ...(lost === undefined ? [] : [lost])];
  const context: StepContext = { idempotencyKey: intent.key, attempt: attemptNumber, signal: AbortSignal.any(signals) };
  const started = runInStep(context, async () => call.run(context));
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new StepTimeoutError(`Step "${intent.name}" gave no answer within ${intent.timeoutMs} ms.`);
      timeout.abort(error);
      reject(error);
    }, intent.timeoutMs);
  });
  return { outcome: Promise.race([started, expired]).finally(() => clearTimeout(timer)), started };
}

/** A step gave no answer in time. Its request may have arrived: unknown, sent. */
class StepTimeoutError extends Error {
  override readonly name = "StepTimeoutError";
  readonly code = "ETIMEDOUT";
}

function replay<O>(call: StepCall<O>, host: StepHost, record: StepRecord): O {
  announce("replayed", call, host, record.usage);
  return (call.codec ?? exact).decode(record.output ?? "null") as O;
}

function announce<O>(type: StepEvent["type"], call: StepCall<O>, host: StepHost, usage: Usage | undefined): void {
  const { key, name, kind, effect, position, inputHash } = call.intent;
  host.onStep?.({ type, threadId: position.threadId, key, node: position.node, name, kind, effect, inputHash, usage });
}

function where<O>(call: StepCall<O>): { threadId: string; step: string } {
  const { position, name } = call.intent;
  return { threadId: position.threadId, step: `${position.node}/${name}` };
}
