// Settles a thread's writes of unknown outcome without running its graph: the world is asked about each, by the lookup
// that is registered under its name. What is left is for a person.
import type { StepHost } from "./call.js";
import type { Effects } from "./effect.js";
import type { StepRecord } from "./ledger.js";
import { lookUp } from "./lookup.js";

export interface SettledStep {
  readonly name: string;
  readonly idempotencyKey: string;
  readonly outcome: "happened" | "did-not-happen";
}

export interface SettledThread {
  readonly settled: readonly SettledStep[];
  /** What a person must settle; with `dueAt`, what the world is asked about again then. */
  readonly open: readonly StepRecord[];
}

export interface SettleOptions {
  /** Where the world says "not yet" the write stays open, in place of waiting or leaving the graph. */
  readonly once?: boolean;
  /** What becomes of a write that somebody is at: nothing, or its end is waited for. With `once` it stays open. */
  readonly running?: "skip" | "wait";
}

/** Whether the outcome of a write is open. */
function isUnknown({ state, effect, leaseLive, doubtSince }: StepRecord, { once, running }: SettleOptions): boolean {
  if (effect !== "write") return false;
  return (
    state === "NEEDS_RECONCILIATION" ||
    (state === "WAITING_HUMAN" && doubtSince !== undefined) ||
    (state === "RUNNING" && (!leaseLive || once === true || running === "wait"))
  );
}

/** Asks the world about every unknown write of the thread. */
export async function settleThread(
  host: StepHost,
  effects: Effects,
  options: SettleOptions = {},
): Promise<SettledThread> {
  const settled: SettledStep[] = [];
  const open: StepRecord[] = [];
  for (const unknown of (await host.ledger.steps(host.ticket.threadId)).filter((record) =>
    isUnknown(record, options),
  )) {
    const record = await settleOne(host, effects, unknown, options.once === true);
    if (record.state === "SUCCEEDED")
      settled.push({ name: record.name, idempotencyKey: record.key, outcome: "happened" });
    else if (record.state === "READY")
      settled.push({ name: record.name, idempotencyKey: record.key, outcome: "did-not-happen" });
    else if (isUnknown(record, options)) open.push(record);
  }
  return { settled, open };
}

async function settleOne(host: StepHost, effects: Effects, unknown: StepRecord, once: boolean): Promise<StepRecord> {
  const { ledger } = host;
  let record = unknown;
  for (;;) {
    host.assertLive();
    const effect = effects.get(record.name);
    if (record.state === "RUNNING" && !record.leaseLive) {
      const reason = "the last holder is gone and left no receipt";
      await ledger.settle(record, { to: "NEEDS_RECONCILIATION", actor: "takeover", reason });
    } else if (record.state === "RUNNING" && !once) {
      const here = host.open.get(record.key);
      if (here !== undefined) await here.catch(() => undefined);
      else
        await host.waitUntil(record.leaseUntil ?? record.readAt, `"${record.name}" is being run elsewhere`, record.key);
    } else if (record.state !== "NEEDS_RECONCILIATION" || record.effectKnown || effect?.lookup === undefined) {
      return record;
    } else if (record.dueAt !== undefined && record.dueAt > record.readAt) {
      if (once) return record;
      await host.waitUntil(record.dueAt, `whether "${record.name}" happened is asked again`, record.key);
    } else {
      await ledger.settle(record, await lookUp(record, effect.lookup, effect.codec));
    }
    record = (await ledger.find(record.key)) ?? record;
  }
}
