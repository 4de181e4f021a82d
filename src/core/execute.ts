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
import { AGAIN, announce, attempt, callRun, codecOf, passBreaker, stepOf, tellBreaker } from "./attempt.js";
import type { Passage } from "./breaker.js";
import type { StepCall, StepHost } from "./call.js";
import { CancelledError, CompensatedError, DatabaseError, StepFailedError, UnserializableError } from "./errors.js";
import { recordFailure } from "./failure.js";
import { moment } from "./lease.js";
import type { StepRecord } from "./ledger.js";
import { type Held, holdFor, refuse, settleFailure, settleSuccess, settleUnsent } from "./purse.js";
import { type Met, meetDoubt, meetDrift } from "./reconcile.js";
import { backoffMs, classifyBy, IN_PROCESS_WAIT_MS, maxFailures } from "./retry.js";
import { reusedRead } from "./reuse.js";
import { standsAlone } from "./sibling.js";

/** Runs a step to its stored output, or leaves the graph with what must happen first. */
export async function executeStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  host.assertLive();
  await host.barrier();
  return host.watch === undefined ? perform(call, host) : host.watch(call, (watched) => perform(watched, host));
}

async function perform<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  if (call.intent.effect === "read" && call.intent.kind !== "llm") {
    const found = await host.ledger.findRead(host.ticket, call.intent.key);
    if (!("existing" in found)) host.refused(found);
    const known = found.existing;
    if (known?.output !== undefined) return replay(call, host, known);
    // A read that is recorded without a result waits for a time that was too far off to wait for in the process.
    if (known === undefined) {
      const reused = await reusedRead(call, host);
      return reused === undefined ? readStep(call, host) : reused.value;
    }
  }
  if (call.intent.kind === "llm" && (await host.branch?.())?.reuse && !(await host.ledger.find(call.intent.key))) {
    const reused = await reusedRead(call, host);
    if (reused !== undefined) return reused.value;
  }
  return joinedStep(call, host);
}

async function joinedStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  // A second attempt at the node, while the first one's call is still open in this process, joins it (G12): it waits, and
  // then goes by what is recorded, which may be another input's.
  for (let open = host.open.get(call.intent.key); open !== undefined; open = host.open.get(call.intent.key)) {
    await open.catch(() => undefined);
    host.assertLive();
  }
  const running = claimedStep(call, host).finally(() => host.open.delete(call.intent.key));
  host.open.set(call.intent.key, running);
  return running;
}

/** A read needs no intent: its row is written with its result, in one transaction. */
async function readStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  const { intent } = call;
  for (let failures = 1; ; failures++) {
    const { held, passage } = await admitRead(call, host, failures);
    let settled = false;
    try {
      const askedMs = performance.now();
      const value = await callRun(call, host, 1).outcome;
      settled = true;
      await settleSuccess(host, held, undefined);
      await tellBreaker(call, host, passage);
      const output = codecOf(call).encode(value, `output of ${intent.name}`);
      const stored = await host.ledger.recordRead(host.ticket, intent, output, performance.now() - askedMs);
      if (!("output" in stored)) host.refused(stored);
      announce("recorded", call, host, undefined);
      return codecOf(call).decode(stored.output) as O;
    } catch (error) {
      if (!settled) await settleFailure(call, host, held, error);
      if (host.isControlFlow(error) || error instanceof UnserializableError || error instanceof DatabaseError)
        throw error;
      await tellBreaker(call, host, passage, error);
      const again = classifyBy(call.classify, error) !== "permanent" && failures < maxFailures(call.retry);
      if (!again || host.signal.aborted || !host.mayRetry()) throw error;
      const dueInMs = backoffMs(failures, error);
      if (dueInMs > IN_PROCESS_WAIT_MS) return scheduleRead(call, host, { dueInMs, failures, error });
      await waitMs(host, dueInMs, `"${intent.name}" is tried again`, intent.key);
    }
  }
}

/** The time to try again is far off: it is recorded, so that no run asks before it, and the failures still count then. */
async function scheduleRead<O>(
  call: StepCall<O>,
  host: StepHost,
  { dueInMs, failures, error }: { dueInMs: number; failures: number; error: unknown },
): Promise<O> {
  const begun = await host.ledger.begin(host.ticket, call.intent, randomUUID());
  if ("claim" in begun) {
    await host.ledger.record(begun.claim, { to: "RETRY_SCHEDULED", dueInMs, failures, failure: recordFailure(error) });
  }
  return joinedStep(call, host);
}

/** Holds back what the read may take, and waits for its breaker to let it pass; nothing is held while it waits. */
async function admitRead<O>(
  call: StepCall<O>,
  host: StepHost,
  failures: number,
): Promise<{ held: Held | undefined; passage: Passage }> {
  for (;;) {
    const held = await holdFor(call, host, failures);
    if (held !== undefined && "exceeded" in held) return refuse(call, host, held.exceeded);
    const passage = await passBreaker(call, host);
    if (!("openForMs" in passage)) return { held, passage };
    await settleUnsent(host, held);
    await waitMs(host, passage.openForMs, `the breaker of "${call.intent.name}" is open`, call.intent.key);
  }
}

async function waitMs(host: StepHost, ms: number, reason: string, key: string): Promise<void> {
  const now = await host.ledger.now();
  await host.waitUntil(new Date(now.getTime() + ms), reason, key);
  host.assertLive();
}

/** A write or a model call: intent, call, receipt. */
async function claimedStep<O>(call: StepCall<O>, host: StepHost): Promise<O> {
  const { ledger, ticket } = host;
  // A lease counts from before the statement that grants it was sent (G29).
  let asked = moment();
  const { undo = false } = call;
  let answer =
    (await askedAboutHistory(call, host)) ?? (await ledger.begin(ticket, call.intent, randomUUID(), { undo }));
  for (;;) {
    if ("lost" in answer || "cancelled" in answer) host.refused(answer);
    if ("closed" in answer) {
      throw new CompensatedError(`Thread "${ticket.threadId}" is being undone and takes no new write.`, stepOf(call));
    }
    if ("alike" in answer) {
      const alone = await standsAlone(call, host, answer.alike);
      asked = moment();
      answer = alone
        ? await ledger.begin(ticket, call.intent, randomUUID(), { alikeAllowed: true, undo })
        : await reread(call, host);
      continue;
    }
    if ("claim" in answer) {
      const done = await attempt(call, host, answer.claim, asked);
      if (done !== AGAIN) return done.value;
      answer = await reread(call, host);
      continue;
    }
    host.assertLive();
    const met = await meet(call, host, answer.existing);
    if (met.next === "replay") return replay(call, host, met.record);
    asked = moment();
    answer =
      met.next === "claim"
        ? await ledger.claimAgain(ticket, met.record, call.intent, randomUUID(), met.reason, { undo })
        : await reread(call, host);
  }
}

/** A new write on a history that does not hold the last one: a person says whether it is done. */
async function askedAboutHistory<O>(call: StepCall<O>, host: StepHost): Promise<{ existing: StepRecord } | undefined> {
  if (call.intent.effect !== "write" || call.undo === true) return undefined;
  const overtaken = await host.overtakenWrite();
  if (overtaken === undefined || (await host.ledger.find(call.intent.key)) !== undefined) return undefined;
  const refused = await host.ledger.beginWaiting(host.ticket, call.intent, overtaken.key);
  const existing = await host.ledger.find(call.intent.key);
  // Nothing was recorded: it is we who were overtaken, or cancelled.
  return existing === undefined ? host.refused(refused ?? { lost: "lease" }) : { existing };
}

async function reread<O>(call: StepCall<O>, host: StepHost): Promise<{ existing: StepRecord }> {
  const existing = await host.ledger.find(call.intent.key);
  if (existing === undefined)
    throw new CancelledError(`The record of step "${call.intent.name}" was deleted while it was running.`);
  return { existing };
}

/** A recorded step met again: decides by its state what this run does with it. */
async function meet<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<Met> {
  const { intent } = call;
  switch (record.state) {
    case "SUCCEEDED":
      if (record.inputHash !== intent.inputHash) meetDrift(call, host, record, await noteDrift(call, host, record));
      else if (record.drift !== undefined && record.drift.decision === undefined)
        await host.ledger.noteDrift(record, undefined);
      return { next: "replay", record };
    case "READY":
      return { next: "claim", record, reason: record.attempt === 0 ? "first claim" : "runs again" };
    case "RETRY_SCHEDULED":
      if (record.dueAt !== undefined && record.dueAt > record.readAt) {
        await host.waitUntil(record.dueAt, `"${intent.name}" is tried again`, intent.key);
        return { next: "reread" };
      }
      return { next: "claim", record, reason: "retry is due" };
    case "RUNNING":
      return meetRunning(host, record);
    case "NEEDS_RECONCILIATION":
    case "WAITING_HUMAN":
      return meetDoubt(call, host, record);
    case "FAILED_PERMANENT":
      throw new StepFailedError(
        record.failure ?? { name: "StepFailedError", message: `Step "${intent.name}" failed.` },
        stepOf(call),
      );
    case "COMPENSATING":
    case "COMPENSATED":
      throw new CompensatedError(`Step "${intent.name}" was undone; its result no longer stands.`, stepOf(call));
    case "CANCELLED":
      throw new CancelledError(`Step "${intent.name}" was cancelled.`, stepOf(call));
  }
}

async function noteDrift<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<StepRecord["drift"]> {
  if (record.drift?.inputHash === call.intent.inputHash) return record.drift;
  await host.ledger.noteDrift(record, call.intent.inputHash);
  return { inputHash: call.intent.inputHash, decision: undefined };
}

/** Somebody claimed it and did not come back, or has not yet. */
async function meetRunning(host: StepHost, record: StepRecord): Promise<Met> {
  if (record.leaseLive && record.leaseUntil !== undefined) {
    await host.waitUntil(record.leaseUntil, `"${record.name}" is being run elsewhere`, record.key);
    return { next: "reread" };
  }
  if (record.effect === "read") return { next: "claim", record, reason: "the last holder is gone" };
  await host.ledger.settle(record, {
    to: "NEEDS_RECONCILIATION",
    actor: "takeover",
    reason: "the last holder is gone and left no receipt",
    failure: { name: "OutcomeUnknown", message: "The process ended between intent and receipt." },
  });
  return { next: "reread" };
}

async function replay<O>(call: StepCall<O>, host: StepHost, record: StepRecord): Promise<O> {
  const stored = (await record.output?.read()) ?? "null";
  announce("replayed", call, host, record.usage);
  const output = codecOf(call).decode(stored);
  const { migrateOutput, intent } = call;
  if (migrateOutput === undefined || record.version === undefined || record.version === intent.version)
    return output as O;
  return migrateOutput(output, record.version);
}
