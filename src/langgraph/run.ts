// One run of a durable graph: it holds the thread's lease from before the first node to the end, and knows when it
// has lost it. Losing is sticky and silent (G3): the run performs nothing more, and leaves as GraphDrained.
import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { ApprovalLedger } from "../core/approval.js";
import type { BudgetLedger } from "../core/budget.js";
import type { Effects } from "../core/effect.js";
import type { LonghaulError, RecordedFailure } from "../core/errors.js";
import { recordFailure } from "../core/failure.js";
import { type HeldLease, holdLease, moment } from "../core/lease.js";
import type { RunEnd, RunLedger, RunOf, RunPurpose, RunTicket, StepEvent, StepLedger } from "../core/ledger.js";
import { RETRIES_PER_RUN } from "../core/retry.js";
import { drained, drainReason, isDrained } from "./leave.js";
import { type CheckpointKnowledge, LEDGER_PARTS, type Ledger, type RunBinding } from "./ledger.js";
import type { RunPurse } from "./runPurse.js";
import type { RunSpan } from "./runSpan.js";

/** Another run has the thread. */
export interface BusyThread {
  readonly busyUntil: Date;
  readonly by: string;
  /** Has the thread run again once it may be free. */
  wakeWhenFree(): Promise<void>;
}

export interface ThreadEnd {
  readonly as: "done" | "failed";
  readonly failure?: RecordedFailure;
}

export class Run implements RunBinding {
  readonly steps: StepLedger;
  readonly budgets: BudgetLedger;
  readonly approvals: ApprovalLedger;
  readonly onStep: ((event: StepEvent) => void) | undefined;
  /** Set when a task asked to be run again at a later time. */
  dueAt: Date | undefined;
  interrupted = false;
  /** No step starts any more. */
  ended = false;
  /** The claimed steps that are open in this process, by key. */
  readonly open = new Map<string, Promise<unknown>>();
  /** What can tell about the checkpoints under a step. */
  saver: CheckpointKnowledge | undefined;
  /** Its checkpointer is not ours: nothing keeps an overtaken run from storing a checkpoint. */
  unguarded = false;
  /** The caller named the checkpoint to start from. */
  addressed = false;
  onFork: "ask" | "run" = "ask";
  /** Threads of durable graphs that run inside this one now: they count their own calls. */
  readonly innerThreads = new Set<string>();
  /** Undefined for work on the thread from outside its graph. */
  span: RunSpan | undefined;
  /** Undefined when nothing limits what the thread spends. */
  purse: RunPurse | undefined;
  /** The node that ends the thread with what there is, where its budget names one. */
  wrapUpNode: string | undefined;
  /** How work from outside the graph leaves the thread; undefined: as it was. */
  leaves: ThreadEnd | undefined;
  /** Requests for approval that were asked in this run, and are not used yet. */
  readonly asked = new Set<string>();
  #askingTurn: Promise<unknown> = Promise.resolve();
  /** What the graph declares, by name. */
  effects: Effects = new Map();
  #retriesLeft = RETRIES_PER_RUN;
  readonly #runs: RunLedger;
  readonly #controller = new AbortController();
  readonly #lease: HeldLease;
  #lost: LonghaulError | undefined;
  #stoppedBy: Error | undefined;

  private constructor(
    readonly ledger: Ledger,
    readonly ticket: RunTicket,
    ports: { steps: StepLedger; runs: RunLedger; budgets: BudgetLedger; approvals: ApprovalLedger },
    grantedAt: ReturnType<typeof moment>,
    readonly purpose: RunPurpose,
  ) {
    const { leaseMs, onStep } = ledger[LEDGER_PARTS];
    this.steps = ports.steps;
    this.budgets = ports.budgets;
    this.approvals = ports.approvals;
    this.onStep = onStep;
    this.#runs = ports.runs;
    this.#lease = holdLease({
      leaseMs,
      grantedAt,
      renew: () => ports.runs.renew(ticket, leaseMs),
      onLost: (error) => this.lose(error),
      what: `the run of thread "${ticket.threadId}"`,
    });
  }

  /** Takes the thread's lease, or says until when another run has it. */
  static async start(
    ledger: Ledger,
    threadId: string,
    purpose: RunPurpose = "run",
    of?: RunOf,
  ): Promise<Run | BusyThread> {
    const { open, leaseMs } = ledger[LEDGER_PARTS];
    const ports = await open();
    const askedAt = moment();
    const answer = await ports.runs.acquire(threadId, randomUUID(), leaseMs, purpose, of);
    if ("busy" in answer) {
      const { leaseUntil, pid, host } = answer.busy;
      const wakeWhenFree = () => ports.runs.wake(threadId, leaseUntil, "the thread was busy");
      return { busyUntil: leaseUntil, by: `process ${pid} on ${host}`, wakeWhenFree };
    }
    return new Run(ledger, answer.ticket, ports, askedAt, purpose);
  }

  get threadId(): string {
    return this.ticket.threadId;
  }

  /** Set once the thread is lost. By the clock, not by the timers: they tell a process that was paused too late (G29). */
  get lost(): LonghaulError | undefined {
    if (this.#lost === undefined) this.#lease.check();
    return this.#lost;
  }

  /** Aborted when the thread is lost. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  lose(error: LonghaulError): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    this.#lease?.stop();
    this.#controller.abort(error);
  }

  /** Settles plain calls that were begun so long ago. */
  settleAbandoned: (openForMs: number) => Promise<void> = async () => {};

  /** Ends the run with this: what is under way is aborted. */
  stop(error: Error): void {
    this.#stoppedBy ??= error;
    this.#controller.abort(error);
  }

  /** Set when something else than the graph ended the run. */
  get stoppedBy(): Error | undefined {
    return this.#stoppedBy;
  }

  /** Counts one more retry, as long as the run has any left (R12). */
  mayRetry(): boolean {
    return this.#retriesLeft-- > 0;
  }

  /** What a run that lost its thread leaves with. */
  leave(): Error {
    const message = this.#lost?.message ?? "The run has ended.";
    return drained({ kind: "lost", threadId: this.threadId, message });
  }

  /** What a step leaves with that could not reach the ledger: what it did is known at its next run, or asked about. */
  unrecorded(error: Error): Error {
    const message = `${error.message} Run the thread again when the database is back; what is in doubt is settled then.`;
    return drained({ kind: "unrecorded", threadId: this.threadId, message });
  }

  /** The thread should run again then; written with the database's own word for the time. */
  async wakeAt(dueAt: Date, reason: string): Promise<void> {
    this.dueAt = this.dueAt === undefined || dueAt < this.dueAt ? dueAt : this.dueAt;
    await this.#runs.wake(this.threadId, dueAt, reason);
  }

  /** Gives the thread free. A ledger that cannot be reached gives it free by time. */
  async end(error?: unknown): Promise<void> {
    this.ended = true;
    // An abandoned attempt (a timeout, a failed sibling) still runs: its outcome belongs to this run.
    await Promise.allSettled(this.open.values());
    await this.purse?.time.close();
    this.#lease?.stop();
    if (this.#lost !== undefined) return;
    const end = this.purpose === "update" ? this.leaves?.as : this.#endedAs(error);
    if (this.purpose === "run") await this.#closeUnasked(end === "done");
    const failure = this.leaves?.failure ?? (end === "failed" ? recordFailure(error) : undefined);
    await this.#runs
      .release(this.ticket, end, failure)
      .catch(() => this.#runs.release(this.ticket, end))
      .catch(() => undefined);
  }

  /** One request at a time: of two calls that ask at once neither may take what is the other's. */
  async inAskingTurn<T>(ask: () => Promise<T>): Promise<T> {
    const turn = this.#askingTurn.then(ask);
    this.#askingTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Requests that nobody will come back to leave the inbox. */
  async #closeUnasked(isDone: boolean): Promise<void> {
    if (!isDone && this.asked.size === 0) return;
    await this.approvals.closeUnasked(this.ticket, [...this.asked], isDone).catch(() => undefined);
  }

  #endedAs(error: unknown): RunEnd {
    const reason = drainReason(error)?.kind;
    if (this.interrupted || reason === "limit" || reason === "idle") return "waiting";
    // Asked to stop by its process, which has left a wake for another one to go on.
    if (this.dueAt !== undefined || (reason === undefined && isDrained(error))) return "due";
    return error === undefined ? "done" : "failed";
  }
}

/** Takes the thread. A server queues runs itself, so there a run waits one lease for the run before it (G19). */
export async function startRun(ledger: Ledger, threadId: string, options: RunnableConfig, of: RunOf): Promise<Run> {
  const onServer = options.metadata?.["langgraph_host"] !== undefined;
  const giveUpAt = performance.now() + (onServer ? ledger[LEDGER_PARTS].leaseMs : 0);
  for (;;) {
    const run = await Run.start(ledger, threadId, "run", of);
    if (!("busyUntil" in run)) return run;
    if (performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, BUSY_LOOK_MS));
      options.signal?.throwIfAborted();
      continue;
    }
    if (onServer) await run.wakeWhenFree();
    const dueAt = run.busyUntil.toISOString();
    const message = `Thread "${threadId}" is being run by ${run.by} until ${dueAt} at least. Nothing was done.`;
    throw drained({ kind: "busy", threadId, dueAt, message });
  }
}

/** How often a run on a server looks whether the thread is free. */
const BUSY_LOOK_MS = 250;
