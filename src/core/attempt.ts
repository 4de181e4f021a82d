// One attempt at a step, under its lease: calls `run`, and records what came of it. A write that threw is in doubt
// unless the error proves that nothing was sent.
import { type Passage, reportTo } from "./breaker.js";
import type { StepCall, StepHost } from "./call.js";
import { type Codec, createCodec } from "./codec.js";
import { runInStep, type StepContext } from "./context.js";
import { type RecordedFailure, StepFailedError } from "./errors.js";
import { recordFailure } from "./failure.js";
import { holdLease, type Moment } from "./lease.js";
import type { Claim, Outcome, StepEvent } from "./ledger.js";
import { type Held, holdFor, refuse, settleFailure, settleSuccess, settleUnsent } from "./purse.js";
import { backoffMs, classifyBy, maxFailures } from "./retry.js";
import type { Usage } from "./step.js";

const exact = createCodec();

/** The failure's code where a write's own code left it by an interrupt, a drain or a Command. */
export const LEFT_BY_CONTROL_FLOW = "LEFT_BY_CONTROL_FLOW";

export function codecOf<O>(call: StepCall<O>): Codec {
  return call.codec ?? exact;
}

/** The step must be looked at again: what is recorded now decides. */
export const AGAIN = Symbol("again");

/** One attempt, claimed: run it under its lease and record what came of it. */
export async function attempt<O>(
  call: StepCall<O>,
  host: StepHost,
  claim: Claim,
  grantedAt: Moment,
): Promise<{ value: O } | typeof AGAIN> {
  const { intent } = call;
  if (!isLive(host)) {
    await giveBack(host, claim, { name: "NotSent", message: "The run was stopped before the call." });
    host.assertLive();
    return AGAIN;
  }
  const controller = new AbortController();
  const lease = holdLease({
    leaseMs: intent.leaseMs,
    grantedAt,
    renew: () => host.ledger.renew(claim, intent.leaseMs),
    onLost: (error) => controller.abort(error),
    what: `attempt ${claim.attempt} of step "${intent.name}"`,
  });
  try {
    const held = await holdOrGiveBack(call, host, claim);
    const passage = await passBreaker(call, host);
    if ("openForMs" in passage) {
      await settleUnsent(host, held);
      return await standBack(host, claim, passage.openForMs);
    }
    const { outcome, started } = callRun(call, host, claim.attempt, controller.signal);
    let value: O;
    try {
      value = await outcome;
    } catch (error) {
      await tellBreaker(call, host, passage, error);
      return await recordThrow(call, host, claim, error, started, held);
    }
    await tellBreaker(call, host, passage);
    const done = await recordSuccess(call, host, claim, value);
    await settleSuccess(host, held, call.usageOf?.(value));
    return done;
  } finally {
    lease.stop();
  }
}

/** Asked right before the call: the process can have been paused since its claim, and the thread be another's by now. */
function isLive(host: StepHost): boolean {
  try {
    host.assertLive();
    return true;
  } catch {
    return false;
  }
}

/** Nothing was sent: the step is left as it was before the claim. */
async function giveBack(host: StepHost, claim: Claim, failure: RecordedFailure): Promise<void> {
  const back: Outcome = claim.inDoubt
    ? { to: "NEEDS_RECONCILIATION", failure }
    : { to: "READY", reason: "stopped before the call", failure };
  await host.ledger.record(claim, back);
}

/** Nothing is sent that a budget does not allow. */
async function holdOrGiveBack<O>(call: StepCall<O>, host: StepHost, claim: Claim): Promise<Held | undefined> {
  let held: Awaited<ReturnType<typeof holdFor>>;
  try {
    held = await holdFor(call, host, claim.attempt);
  } catch (error) {
    await giveBack(host, claim, recordFailure(error));
    throw error;
  }
  if (held === undefined || !("exceeded" in held)) return held;
  const message = `The budget's limit of ${held.exceeded.limit} does not allow this call.`;
  await giveBack(host, claim, { name: "BudgetExceeded", message });
  return refuse(call, host, held.exceeded);
}

/** The breaker is open: nothing was sent, and no failure is counted. */
async function standBack(host: StepHost, claim: Claim, dueInMs: number): Promise<typeof AGAIN> {
  const to = claim.inDoubt ? "NEEDS_RECONCILIATION" : "RETRY_SCHEDULED";
  await host.ledger.record(claim, { to, dueInMs: Math.ceil(dueInMs), failure: undefined });
  return AGAIN;
}

/** Whether the effect's breaker lets this call pass; without one it always may. */
export async function passBreaker<O>({ breaker, intent }: StepCall<O>, host: StepHost): Promise<Passage> {
  if (breaker === undefined) return { pass: "closed", failures: 0 };
  return host.ledger.breakers.enter(breaker.name, breaker, intent.timeoutMs);
}

export async function tellBreaker<O>(
  call: StepCall<O>,
  host: StepHost,
  passage: Passage,
  error?: unknown,
): Promise<void> {
  if (call.breaker === undefined || (error !== undefined && host.isControlFlow(error))) return;
  const verdict = error === undefined ? "succeeded" : classifyBy(call.classify, error);
  // A breaker that was not told costs a call; what the call came to must not be lost for it.
  await reportTo(host.ledger.breakers, call.breaker, passage, verdict).catch(() => undefined);
}

async function recordSuccess<O>(
  call: StepCall<O>,
  host: StepHost,
  claim: Claim,
  value: O,
): Promise<{ value: O } | typeof AGAIN> {
  const codec = codecOf(call);
  let output: string;
  try {
    output = codec.encode(value, `output of ${call.intent.name}`);
  } catch (error) {
    const failure = recordFailure(error);
    if (call.intent.effect === "read") {
      const usage = call.usageOf?.(value);
      const paid = { ...failure, ...(usage === undefined ? {} : { usage }) };
      await host.ledger.record(claim, { to: "READY", reason: "its output cannot be stored", failure: paid });
      throw error;
    }
    // It happened: sending it again would be a second effect, so a person gives the receipt.
    await host.ledger.record(claim, { to: "NEEDS_RECONCILIATION", failure, effectKnown: true });
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
  held: Held | undefined,
): Promise<typeof AGAIN> {
  const outcome = outcomeOrDoubt(call, host, claim, error);
  const answer = await host.ledger.record(claim, outcome);
  await settleFailure(call, host, held, error, "failure" in outcome ? outcome.failure?.usage : undefined);
  if (outcome.to === "NEEDS_RECONCILIATION") keepLateSuccess(call, host, claim, started);
  if (outcome.to === "READY") throw error;
  if (answer === "fenced") return AGAIN;
  if (outcome.to === "FAILED_PERMANENT") throw new StepFailedError(outcome.failure, { ...stepOf(call), cause: error });
  return AGAIN;
}

/** An error that cannot even be read proves nothing: a write that threw it may have happened. */
function outcomeOrDoubt<O>(call: StepCall<O>, host: StepHost, claim: Claim, error: unknown): Outcome {
  try {
    return outcomeOf(call, host, claim, error);
  } catch {
    const failure = recordFailure(error);
    return call.intent.effect === "read"
      ? { to: "READY", reason: "failed", failure, givenUp: true }
      : { to: "NEEDS_RECONCILIATION", failure };
  }
}

/** Which state a thrown error leads to. A write in doubt never fails: no error is a "no" while it may have happened. */
function outcomeOf<O>(call: StepCall<O>, host: StepHost, claim: Claim, error: unknown): Outcome {
  const { intent } = call;
  const failure = recordFailure(error);
  const failures = claim.failures + 1;
  if (intent.effect === "read" && host.isControlFlow(error)) return { to: "READY", reason: "control flow", failure };
  if (host.signal.aborted && error === host.signal.reason) {
    // The step's code passed on why its signal was aborted: that says nothing about what had been sent.
    const message = `The run was stopped while step "${intent.name}" was under way, so it may have happened.`;
    return { to: "NEEDS_RECONCILIATION", failure: { name: "Stopped", message } };
  }
  if (host.isControlFlow(error)) {
    const message = `Step "${intent.name}" was left by an interrupt, a Command or a drain inside its run, so it may have been sent. Ask before the step, not inside it.`;
    return { to: "NEEDS_RECONCILIATION", failure: { name: failure.name, message, code: LEFT_BY_CONTROL_FLOW } };
  }
  const verdict = classifyBy(call.classify, error);
  const again = failures < maxFailures(call.retry) && !host.signal.aborted;
  if (intent.effect === "read") {
    if (verdict === "permanent" || !again || !host.mayRetry())
      return { to: "READY", reason: "failed", failure, givenUp: true };
    return { to: "RETRY_SCHEDULED", dueInMs: backoffMs(failures, error), failure };
  }
  if (claim.inDoubt || verdict === "unknown-sent") {
    // An idempotent write is sent again with its key, but not in a tight loop.
    const later = call.idempotent === true ? { dueInMs: backoffMs(failures, error) } : {};
    return { to: "NEEDS_RECONCILIATION", failure, ...later };
  }
  // Nothing was sent, and a run that was stopped does not try again: the next one does.
  if (verdict !== "permanent" && host.signal.aborted) return { to: "READY", reason: "the run was stopped", failure };
  if (verdict === "permanent" || !again || !host.mayRetry()) return { to: "FAILED_PERMANENT", failure };
  return { to: "RETRY_SCHEDULED", dueInMs: backoffMs(failures, error), failure };
}

/** The attempt was given up, but its code still runs: should it succeed after all, that is evidence. */
function keepLateSuccess<O>(call: StepCall<O>, host: StepHost, claim: Claim, started: Promise<O>): void {
  started
    .then(
      (value) => host.ledger.recordLateSuccess(claim, codecOf(call).encode(value)),
      () => undefined,
    )
    .catch(() => undefined);
}

/** Calls `run` under its timeout. `started` is the run itself, which JavaScript cannot stop. */
export function callRun<O>(
  call: StepCall<O>,
  host: Pick<StepHost, "signal" | "artifacts">,
  attemptNumber: number,
  lease?: AbortSignal,
): { outcome: Promise<O>; started: Promise<O> } {
  const { intent } = call;
  const timeout = new AbortController();
  const signal = AbortSignal.any([host.signal, timeout.signal, ...(lease === undefined ? [] : [lease])]);
  const artifacts = host.artifacts(signal);
  const context: StepContext = { idempotencyKey: intent.key, attempt: attemptNumber, signal, artifacts };
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

/** Tells the listener, after the commit. */
export function announce<O>(
  type: StepEvent["type"],
  call: StepCall<O>,
  host: StepHost,
  usage: Usage | undefined,
): void {
  const { key, name, kind, effect, position, inputHash } = call.intent;
  try {
    host.onStep?.({
      type,
      threadId: position.threadId,
      key,
      node: position.node,
      name,
      kind,
      effect,
      inputHash,
      usage,
    });
  } catch {
    // A listener that throws is not the step's failure.
  }
}

/** How an error names the step. */
export function stepOf<O>(call: StepCall<O>): { threadId: string; step: string } {
  const { position, name } = call.intent;
  return { threadId: position.threadId, step: `${position.node}/${name}` };
}
