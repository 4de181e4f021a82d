// The working time of a scope: a clock that runs while the scope is open, kept in the ledger so that restarts go on with it.
import { ActiveClock, TICK_MS } from "../../core/activeClock.js";
import type { BudgetState, ThreadBudget } from "../../core/budget.js";
import { BudgetExceededError } from "../../core/errors.js";
import { drained } from "../leave.js";
import type { PayingRun } from "./payingRun.js";

/** What a crash takes at most from the count of a scope that makes no calls. */
const RECORD_EVERY_MS = 5000;

export class WorkTime {
  readonly #run: PayingRun;
  readonly #scope: string;
  readonly #outer: WorkTime | undefined;
  readonly #budget: ThreadBudget;
  /** Undefined where nothing limits time. */
  readonly #clock: ActiveClock | undefined;
  #timer: NodeJS.Timeout | undefined;
  #recordedMs = 0;

  constructor(run: PayingRun, state: BudgetState, budget: ThreadBudget, outer: WorkTime | undefined) {
    this.#run = run;
    this.#scope = state.scope;
    this.#budget = budget;
    this.#outer = outer;
    if (state.allowed.activeMs === undefined && budget.idleMs === undefined) return;
    this.#recordedMs = state.spent.activeMs;
    this.#clock = new ActiveClock({ activeMs: state.spent.activeMs, suspendedMs: state.suspendedMs });
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  /** A piece of work, here and in the scopes around. */
  async working<T>(work: () => Promise<T>): Promise<T> {
    const clocks = this.#clocks();
    for (const clock of clocks) clock.begin();
    try {
      return await work();
    } finally {
      for (const clock of clocks) clock.end();
    }
  }

  /** A wait in a piece of work. */
  async waiting<T>(wait: () => Promise<T>): Promise<T> {
    const ends = this.#clocks().map((clock) => clock.wait());
    try {
      return await wait();
    } finally {
      for (const end of ends) end();
    }
  }

  /** Something began or ended: the scopes are not idle. */
  begins(): () => void {
    const clocks = this.#clocks();
    for (const clock of clocks) clock.begin();
    return () => {
      for (const clock of clocks) clock.end();
    };
  }

  /** Brings the ledger up to date. */
  async record(): Promise<void> {
    await this.#outer?.record();
    if (this.#clock === undefined) return;
    const suspendedMs = this.#clock.tick();
    const { activeMs } = this.#clock;
    this.#recordedMs = activeMs;
    await this.#run.budgets.recordTime(this.#scope, activeMs, this.#clock.suspendedMs);
    if (suspendedMs > 0) await this.#noteSuspended(suspendedMs);
  }

  /** The scope is left. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    // A ledger that cannot be reached has the figures of some seconds ago.
    await this.record().catch(() => undefined);
  }

  #clocks(): readonly ActiveClock[] {
    const around = this.#outer === undefined ? [] : this.#outer.#clocks();
    return this.#clock === undefined ? around : [this.#clock, ...around];
  }

  #tick(): void {
    const clock = this.#clock;
    if (clock === undefined) return;
    const suspendedMs = clock.tick();
    if (suspendedMs > 0) this.#noteSuspended(suspendedMs).catch(() => undefined);
    const { idleMs } = this.#budget;
    if (idleMs !== undefined && clock.idleMs >= idleMs) this.#stopIdle(idleMs);
    if (clock.activeMs - this.#recordedMs < RECORD_EVERY_MS) return;
    this.#recordedMs = clock.activeMs;
    this.#run.budgets.recordTime(this.#scope, clock.activeMs, clock.suspendedMs).catch(() => undefined);
  }

  #stopIdle(idleMs: number): void {
    clearInterval(this.#timer);
    const { threadId } = this.#run;
    const message =
      `Thread "${threadId}" was stopped: for ${idleMs} ms no call began or ended in it. ` +
      "See what it was at: longhaul trace. Run it again with null as input; what is recorded is not done again.";
    const failing = this.#budget.onExceeded === "fail";
    this.#run.stop(
      failing ? new BudgetExceededError(message, { threadId }) : drained({ kind: "idle", threadId, message }),
    );
  }

  async #noteSuspended(ms: number): Promise<void> {
    await this.#run.budgets.note({ scope: this.#scope, kind: "suspended", detail: { ms: Math.round(ms) } });
  }
}
