// One run of a durable graph: it holds the thread's lease from before the first node to the end, and knows when it
// has lost it. Losing is sticky and silent (G3): the run performs nothing more, and leaves as GraphDrained.
import { type GraphDrained, RunControl } from "@langchain/langgraph";
import type { ApprovalLedger } from "../../core/approval.js";
import type { Artifacts } from "../../core/artifact.js";
import type { Branch } from "../../core/branch.js";
import type { BudgetLedger } from "../../core/budget.js";
import { type CancelRequest, cancelledError } from "../../core/cancel.js";
import { CancelledError, LeaseLostError, type LonghaulError, type RecordedFailure } from "../../core/errors.js";
import { recordFailure } from "../../core/failure.js";
import { type HeldLease, holdLease } from "../../core/lease.js";
import type { Refused, RunLedger, RunPurpose, RunTicket, StepEvent, StepLedger } from "../../core/ledger.js";
import { RETRIES_PER_RUN } from "../../core/retry.js";
import type { PinLedger, PinState } from "../../core/version.js";
import { AskedRequests } from "../approval/askedRequests.js";
import type { RunPurse } from "../budget/runPurse.js";
import { drained, drainReason } from "../leave.js";
import { type CheckpointKnowledge, LEDGER_PARTS, type Ledger, type RunBinding } from "../ledger.js";
import type { RunSpan } from "../span/runSpan.js";
import { acquire, type BusyThread, type Granted, type OuterRun, type Start } from "./acquire.js";
import { DeadlineWatch } from "./deadlineWatch.js";
import { NO_GRAPH } from "./graphSettings.js";
import { type LiveRun, liveRunsOf } from "./liveRuns.js";
import { endOf, stoppedAtLimit } from "./runEnd.js";

export interface ThreadEnd {
  readonly as: "done" | "failed";
  readonly failure?: RecordedFailure;
}

export class Run implements RunBinding, LiveRun {
  readonly ticket: RunTicket;
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
  /** What the code of its graph says. */
  settings = NO_GRAPH;
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
  readonly asked = new AskedRequests();
  /** It goes on with what an earlier run began, whose code may have been another build's. */
  goesOn = false;
  #retriesLeft = RETRIES_PER_RUN;
  /** The thread was ordered with an input, which its first run takes. */
  readonly ordered: boolean;
  /** The thread has forks. */
  readonly forked: boolean;
  /** The fork that the run is on; asked for once. */
  branch: Promise<Branch | undefined> | undefined;
  /** LangGraph's own way to stop between supersteps. */
  control = new RunControl();
  readonly #outer: readonly OuterRun[];
  readonly #runs: RunLedger;
  readonly #controller = new AbortController();
  readonly #lease: HeldLease;
  #lost: LonghaulError | undefined;
  #stoppedBy: Error | undefined;
  #drain: GraphDrained | undefined;
  #deadline: DeadlineWatch | undefined;

  private constructor(
    readonly ledger: Ledger,
    { answer, ports, askedAt }: Granted,
    readonly purpose: RunPurpose,
    outer: readonly OuterRun[],
  ) {
    const { leaseMs, onStep } = ledger[LEDGER_PARTS];
    this.ticket = answer.ticket;
    this.ordered = answer.ordered;
    this.forked = answer.forked;
    this.#outer = outer;
    this.steps = ports.steps;
    this.budgets = ports.budgets;
    this.approvals = ports.approvals;
    this.pins = ports.pins;
    this.onStep = onStep;
    this.#runs = ports.runs;
    this.#lease = holdLease({
      leaseMs,
      grantedAt: askedAt,
      renew: () => this.#renew(),
      onLost: (error) => this.lose(error),
      what: `the run of thread "${this.threadId}"`,
    });
    if (purpose === "run") liveRunsOf(ledger).add(this);
  }

  /** Takes the thread's lease, or says until when another run has it. */
  static async start(
    ledger: Ledger,
    threadId: string,
    purpose: RunPurpose = "run",
    start: Start = {},
  ): Promise<Run | BusyThread> {
    const granted = await acquire(ledger, threadId, purpose, start);
    if ("busyUntil" in granted) return granted;
    return new Run(ledger, granted, purpose, start.outer ?? []);
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

  /** Gives the thread free. A ledger that cannot be reached gives it free by time. */
  async end(error?: unknown): Promise<void> {
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
    if (this.purpose === "run") await this.asked.closeOthers(this.approvals, this.ticket, end === "done");
    const failure = this.leaves?.failure ?? (end === "failed" ? recordFailure(error) : stoppedAtLimit(error));
    // A thread that runs inside another is gone on with by that one.
    const wake = drainReason(error)?.kind === "shutdown" && this.#outer.length === 0 ? SHUTDOWN : undefined;
    await this.#runs
      .release(this.ticket, end, failure, wake)
      .catch(() => this.#runs.release(this.ticket, end, undefined, wake))
      .catch(() => undefined);
  }
}

/** Why a thread is due whose process was told to stop. */
const SHUTDOWN = "its process was stopping";
