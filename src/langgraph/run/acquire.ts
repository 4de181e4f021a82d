// Taking a thread's lease for a run: granted, or why not.
import { randomUUID } from "node:crypto";
import { cancelledError } from "../../core/cancel.js";
import { type LonghaulError, NotFoundError } from "../../core/errors.js";
import { moment } from "../../core/lease.js";
import type { AcquireAnswer, RunPurpose } from "../../core/ledger.js";
import { LEDGER_PARTS, type Ledger } from "../ledger.js";

/** Another run has the thread. */
export interface BusyThread {
  readonly busyUntil: Date;
  readonly by: string;
  /** Has the thread run again once it may be free. */
  wakeWhenFree(): Promise<void>;
}

/** A run around another one. */
export interface OuterRun {
  readonly threadId: string;
  readonly lost: LonghaulError | undefined;
  /** What a step leaves with that would start after the process was asked to stop. */
  readonly drain: Error | undefined;
  lookForCancel(): Promise<void>;
  leave(): Error;
}

/** What a run is started for. */
export interface Start {
  readonly graph?: string;
  readonly outer?: readonly OuterRun[];
  /** It is given nothing to begin with, or the checkpoint that it starts from. */
  readonly goesOn?: boolean;
  readonly addressed?: boolean;
  readonly ttlMs?: number | undefined;
}

/** The lease is taken. */
export interface Granted {
  readonly answer: Extract<AcquireAnswer, { ticket: unknown }>;
  readonly ports: Awaited<ReturnType<Ledger[typeof LEDGER_PARTS]["open"]>>;
  /** Before the statement that granted it was sent (G29). */
  readonly askedAt: ReturnType<typeof moment>;
}

/** @throws CancelledError for a thread that was cancelled, NotFoundError for one that was deleted and is given nothing new. */
export async function acquire(
  ledger: Ledger,
  threadId: string,
  purpose: RunPurpose,
  { graph, outer = [], goesOn = false, addressed = false, ttlMs }: Start,
): Promise<Granted | BusyThread> {
  const { open, leaseMs } = ledger[LEDGER_PARTS];
  const ports = await open();
  const askedAt = moment();
  const around = { rootThread: outer.at(-1)?.threadId, parentThread: outer[0]?.threadId };
  const of = { graph, ...around, goesOn, addressed, ttlMs };
  const answer = await ports.runs.acquire(threadId, randomUUID(), leaseMs, purpose, of);
  if ("cancelled" in answer) {
    // Cancelled with the run around it, which may not know yet: that one leaves, and no error handler of it is called.
    for (const run of outer) await run.lookForCancel();
    throw outer.find(({ lost }) => lost !== undefined)?.leave() ?? cancelledError(threadId, answer.cancelled);
  }
  if ("deleted" in answer) {
    const { at, by } = answer.deleted;
    throw new NotFoundError(
      `Thread "${threadId}" was deleted by ${by} at ${at.toISOString()}: there is nothing to go on with. With new input it begins anew.`,
      { threadId },
    );
  }
  if ("busy" in answer) {
    const { leaseUntil, pid, host } = answer.busy;
    const wakeWhenFree = () => ports.runs.wake(threadId, leaseUntil, "the thread was busy");
    return { busyUntil: leaseUntil, by: `process ${pid} on ${host}`, wakeWhenFree };
  }
  return { answer, ports, askedAt };
}
