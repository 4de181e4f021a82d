// One run of a durable graph: it holds the thread's lease from before the first node to the end, and knows when it
// has lost it. Losing is sticky and silent (G3): the run performs nothing more, and leaves as GraphDrained.
import { randomUUID } from "node:crypto";
import { type GraphDrained, RunControl } from "@langchain/langgraph";
import type { ApprovalLedger } from "../core/approval.js";
import type { Artifacts } from "../core/artifact.js";
import type { Branch } from "../core/branch.js";
import type { BudgetLedger } from "../core/budget.js";
import { type CancelRequest, cancelledError } from "../core/cancel.js";
import type { Effects } from "../core/effect.js";
import {
  CancelledError,
  LeaseLostError,
  type LonghaulError,
  NotFoundError,
  type RecordedFailure,
} from "../core/errors.js";
import { recordFailure } from "../core/failure.js";
import { type HeldLease, holdLease, moment } from "../core/lease.js";
import type { Refused, RunLedger, RunPurpose, RunTicket, StepEvent, StepLedger } from "../core/ledger.js";
import { RETRIES_PER_RUN } from "../core/retry.js";
import type { PinLedger, PinState } from "../core/version.js";
import { DeadlineWatch } from "./deadlineWatch.js";
import { drained, drainReason } from "./leave.js";
import { type CheckpointKnowledge, LEDGER_PARTS, type Ledger, type RunBinding } from "./ledger.js";
import { type LiveRun, liveRunsOf } from "./liveRuns.js";
import { endOf, stoppedAtLimit } from "./runEnd.js";
import type { RunPurse } from "./runPurse.js";
import type { RunSpan } from "./runSpan.js";
import type { DecidingNodes } from "./temperature.js";

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

/** The runs around a new one, the innermost first. */
interface Around {
  readonly outer: readonly Run[];
}

/** What a run is started for. */
export interface Start {
  readonly graph?: string;
  readonly outer?: readonly Run[];
  /** It is given nothing to begin with, or the checkpoint that it starts from. */
  readonly goesOn?: boolean;
  readonly addressed?: boolean;
  readonly ttlMs?: number | undefined;
}

export class Run implements RunBinding, LiveRun {
  readonly steps: StepLedger;
  readonly budgets: BudgetLedger;
  readonly approvals: ApprovalLedger;
  readonly pins: PinLedger;
  /** What the thread is held to, as far as this run has asked. */
  readonly pinned = new Map<string, Promise<PinState>>();
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
  readonly #calls = new Set<Promise<unknown>>();
  #askingTurn: Promise<unknown> = Promise.resolve();
  /** What the graph declares, by name. */
  effects: Effects = new Map();
  /** Tools of other versions than the newest, for threads that are held to them. */
  olderTools: ReadonlyMap<string, object> = new Map();
  /** What the caller has the thread pinned to besides its tools. */
  values: Readonly<Record<string, string>> = {};
  /** It goes on with what an earlier run began, whose code may have been another build's. */
  goesOn = false;
  /** Steps that the code has other names for than it had: the old name, and the new one. */
  renames: Readonly<Record<string, string>> = {};
  /** Undefined for work on the thread from outside its graph. */
  deciding: DecidingNodes | undefined;
  #retriesLeft = RETRIES_PER_RUN;
  /** The thread was ordered with an input, which its first run takes. */
  readonly ordered: boolean;
  /** The thread has forks. */
  readonly forked: boolean;
  /** The fork that the run is on; asked for once. */
  branch: Promise<Branch | undefined> | undefined;
  /** LangGraph's own way to stop between supersteps. */
  control = new RunControl();
  readonly #outer: readonly Run[];
  readonly #runs: RunLedger;
  readonly #controller = new AbortController();
  readonly #lease: HeldLease;
  #lost: LonghaulError | undefined;
  #stoppedBy: Error | undefined;
  #drain: GraphDrained | undefined;
  #deadline: DeadlineWatch | undefined;

  private constructor(
    readonly ledger: Ledger,
    readonly ticket: RunTicket,
    ports: { steps: StepLedger; runs: RunLedger; budgets: BudgetLedger; approvals: ApprovalLedger; pins: PinLedger },
    grantedAt: ReturnType<typeof moment>,
    readonly purpose: RunPurpose,
    { ordered, forked, outer }: { ordered: boolean; forked: boolean } & Around,
  ) {
    const { leaseMs, onStep } = ledger[LEDGER_PARTS];
    this.ordered = ordered;
    this.forked = forked;
    this.#outer = outer;
    this.steps = ports.steps;
    this.budgets = ports.budgets;
    this.approvals = ports.approvals;
    this.pins = ports.pins;
    this.onStep = onStep;
    this.#runs = ports.runs;
    this.#lease = holdLease({
      leaseMs,
      grantedAt,
      renew: () => this.#renew(),
      onLost: (error) => this.lose(error),
      what: `the run of thread "${ticket.threadId}"`,
    });
    if (purpose === "run") liveRunsOf(ledger).add(this);
  }

  /** Takes the thread's lease, or says until when another run has it. */
  static async start(
    ledger: Ledger,
    threadId: string,
    purpose: RunPurpose = "run",
    { graph, outer = [], goesOn = false, addressed = false, ttlMs }: Start = {},
  ): Promise<Run | BusyThread> {
    const { open, leaseMs } = ledger[LEDGER_PARTS];
    const ports = await open();
    const askedAt = moment();
    const of = {
      graph,
      rootThread: outer.at(-1)?.threadId,
      parentThread: outer[0]?.threadId,
      goesOn,
      addressed,
      ttlMs,
    };
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
    return new Run(ledger, answer.ticket, ports, askedAt, purpose, {
      ordered: answer.ordered,
      forked: answer.forked,
      outer,
    });
  }

  /** The artifacts of its thread. */
  artifacts(signal: AbortSignal): Artifacts {
    return this.ledger[LEDGER_PARTS].artifacts({ owner: this.ticket, signal });
  }

  get threadId(): string {
    return this.ticket.threadId;
  }

  /** Set once the thread is lost. By the clock, not by the timers: they tell a process that was paused too late (G29). */
  get lost(): LonghaulError | undefined {
    if (this.#lost === undefined) this.#lease.check();
    return this.#lost;
  }

  /** Aborted when the thread is lost or cancelled, and when the run is stopped. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The run does nothing more. One that was cancelled keeps its thread until what is under way has ended. */
  lose(error: LonghaulError): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    const cancelled = error instanceof CancelledError;
    if (!cancelled) this.#lease?.stop();
    this.#controller.abort(cancelled ? this.leave() : error);
  }

  cancel(request: CancelRequest): void {
    if (this.purpose === "run") this.lose(cancelledError(this.threadId, request));
  }

  /** The ledger refused something that the run was about to do. */
  refused(why: Refused): void {
    if ("cancelled" in why) this.cancel(why.cancelled);
    else this.lose(new LeaseLostError(`The thread "${this.threadId}" was taken over by another run.`));
  }

  /** Learns from the ledger whether somebody has cancelled the run. */
  async lookForCancel(): Promise<void> {
    const cancelled = await this.#runs.cancelOf(this.ticket);
    if (cancelled !== undefined) this.cancel(cancelled);
  }

  forks(): ReturnType<RunLedger["forks"]> {
    return this.#runs.forks(this.threadId);
  }

  orderedInput(): ReturnType<RunLedger["orderedInput"]> {
    return this.#runs.orderedInput(this.threadId);
  }

  /** What a step leaves with that would start after the process was asked to stop. */
  get drain(): Error | undefined {
    return this.#drain ?? this.#outer.map(({ drain }) => drain).find((drain) => drain !== undefined);
  }

  /** Uses the caller's own way to stop between supersteps. */
  adopt(control: RunControl): void {
    this.control = control;
    if (this.#drain !== undefined) control.requestDrain(this.#drain.reason);
  }

  /** Has the run stop before its next step, or its next superstep. */
  requestDrain(): void {
    if (this.#drain !== undefined || this.purpose !== "run") return;
    const message = `The process that runs thread "${this.threadId}" is stopping. The thread is due, and goes on with null as input.`;
    const left = drained({ kind: "shutdown", threadId: this.threadId, message });
    this.#drain = left;
    this.control.requestDrain(left.reason);
  }

  async #renew(): Promise<boolean> {
    const renewed = await this.#runs.renew(this.ticket, this.ledger[LEDGER_PARTS].leaseMs);
    if (renewed === false) return false;
    if (renewed.cancelled !== undefined) this.cancel(renewed.cancelled);
    this.#deadline?.seen(renewed.deadlineInMs);
    return true;
  }

  /** Has `onOver` called when the deadline of the thread's budget passes while the run is at work. */
  async watchDeadline(onOver: () => void): Promise<void> {
    this.#deadline = new DeadlineWatch(() => this.#renew(), onOver);
    await this.#renew();
  }

  /** The thread is due now, for the reason given. */
  async wakeNow(reason: string): Promise<Date> {
    const now = await this.steps.now();
    await this.wakeAt(now, reason);
    return now;
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

  /** What a run that lost its thread, or was cancelled, leaves with. */
  leave(): Error {
    const message = this.#lost?.message ?? "The run has ended.";
    const kind = this.#lost instanceof CancelledError ? "cancelled" : "lost";
    return drained({ kind, threadId: this.threadId, message });
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

  /** Has the run wait for a call at its end: one beside it may have paused, and this one is still made. */
  async alongside<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** Gives the thread free. A ledger that cannot be reached gives it free by time. */
  async end(error?: unknown): Promise<void> {
    if (!this.signal.aborted) await Promise.allSettled(this.#calls);
    this.ended = true;
    this.#deadline?.stop();
    // An abandoned attempt (a timeout, a failed sibling) still runs: its outcome belongs to this run.
    await Promise.allSettled(this.open.values());
    await this.purse?.time.close();
    this.#lease?.stop();
    if (this.#lost === undefined || this.#lost instanceof CancelledError) await this.#release(error);
    liveRunsOf(this.ledger).delete(this);
  }

  async #release(error: unknown): Promise<void> {
    // A graph that ran inside can have been cancelled alone: this one has failed then.
    const cancelled = [this, ...this.#outer].some(({ lost }) => lost instanceof CancelledError);
    const { interrupted, dueAt } = this;
    const end = this.purpose === "update" ? this.leaves?.as : endOf(error, { cancelled, interrupted, dueAt });
    if (this.purpose === "run") await this.#closeUnasked(end === "done");
    const failure = this.leaves?.failure ?? (end === "failed" ? recordFailure(error) : stoppedAtLimit(error));
    // A thread that runs inside another is gone on with by that one.
    const wake = drainReason(error)?.kind === "shutdown" && this.#outer.length === 0 ? SHUTDOWN : undefined;
    await this.#runs
      .release(this.ticket, end, failure, wake)
      .catch(() => this.#runs.release(this.ticket, end, undefined, wake))
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
}

/** Why a thread is due whose process was told to stop. */
const SHUTDOWN = "its process was stopping";
