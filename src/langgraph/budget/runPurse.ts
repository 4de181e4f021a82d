// A run's way to its budgets: the scope that some code runs in, and those around it, which pay as well.
import type {
  Amounts,
  Budget,
  BudgetState,
  Exceeded,
  OnExceeded,
  Purse,
  ScopeBudget,
  Superstep,
  ThreadBudget,
} from "../../core/budget.js";
import { keptOf, storedLimits } from "../../core/budgetOptions.js";
import { BudgetExceededError, LeaseLostError } from "../../core/errors.js";
import { type Ladder, pick, rungAt } from "../../core/ladder.js";
import { remainingRatio, shareOf } from "../../core/remaining.js";
import { exceededBy, type Required } from "../../core/require.js";
import { atLimit, drained, finishing, limitMessage } from "../leave.js";
import type { BudgetView } from "./budgetView.js";
import type { PayingRun } from "./payingRun.js";
import { WorkTime } from "./workTime.js";

/** How often a call that waits for others looks whether they have left enough. */
const HOLD_LOOK_MS = 250;
/** How long it waits for a plain call that may have been given up. */
const HOLD_PATIENCE_MS = 30_000;

export class RunPurse implements Purse, BudgetView {
  /** Counts the scope's working time where something limits it. */
  readonly time: WorkTime;
  readonly #run: PayingRun;
  readonly #own: Budget;
  readonly #outer: RunPurse | undefined;
  readonly #supersteps = new Map<string, Promise<void>>();
  readonly #rungs = new WeakMap<object, number>();
  #state: BudgetState;

  private constructor(run: PayingRun, own: ThreadBudget, state: BudgetState, outer: RunPurse | undefined) {
    this.#run = run;
    this.#own = own;
    this.#state = state;
    this.#outer = outer;
    this.time = new WorkTime(run, state, own, outer?.time);
  }

  /**
   * Opens the thread's scope below that of the run around it; undefined when neither has a budget.
   *
   * @param newInput whether the thread has something new to do
   */
  static async open(
    run: PayingRun,
    budget: ThreadBudget | undefined,
    outer: RunPurse | undefined,
    newInput = false,
  ): Promise<RunPurse | undefined> {
    if (budget === undefined && outer === undefined) return undefined;
    const terms = {
      scope: run.threadId,
      parent: outer?.scope,
      limits: storedLimits(budget ?? {}),
      kept: keptOf(budget?.wrapUp),
      once: false,
      newInput,
      anew: newInput && budget?.per === "run",
      onExceeded: budget?.onExceeded ?? outer?.onExceeded,
    };
    return new RunPurse(run, budget ?? {}, await run.budgets.open(run.ticket, terms), outer);
  }

  /** Opens a scope within this one, or finds it as it is left. */
  async openScope(scope: string, budget: ScopeBudget): Promise<RunPurse> {
    const { share, ...own } = budget;
    const asked = storedLimits(own);
    const limits = share === undefined ? asked : shareOf(share, await this.#chain(), asked);
    const terms = {
      scope,
      parent: this.scope,
      limits,
      kept: keptOf(undefined),
      once: share !== undefined,
      newInput: false,
      anew: false,
    };
    return new RunPurse(this.#run, own, await this.#run.budgets.open(this.#run.ticket, terms), this);
  }

  get scope(): string {
    return this.#state.scope;
  }

  /** Every scope that pays, this one first. */
  get scopes(): readonly string[] {
    return [this.scope, ...(this.#outer?.scopes ?? [])];
  }

  /** Whether some scope limits dollars: then a call without a known price cannot be let through. */
  get limitsUsd(): boolean {
    return this.#state.allowed.nanoUsd !== undefined || this.#outer?.limitsUsd === true;
  }

  get limited(): boolean {
    return Object.values(this.#state.allowed).some((limit) => limit !== undefined) || this.#outer?.limited === true;
  }

  get remainingRatio(): number {
    return Math.min(remainingRatio(this.#state), this.#outer?.remainingRatio ?? 1);
  }

  get spentNanoUsd(): bigint {
    return this.#state.spent.nanoUsd;
  }

  get exceeded(): boolean {
    return this.#state.exceeded;
  }

  pick<T>(ladder: Ladder<T>): T {
    const ratio = this.remainingRatio;
    const rung = rungAt(ladder, ratio);
    const before = this.#rungs.get(ladder) ?? 1;
    this.#rungs.set(ladder, rung);
    if (rung !== before) {
      const kind = rung < before ? "degraded" : "restored";
      const detail = { below: rung, remainingRatio: ratio };
      // The history is for people; a node does not wait for it, or fail with it.
      this.#run.budgets.note({ scope: this.scope, kind, detail }).catch(() => undefined);
    }
    return pick(ladder, ratio);
  }

  async refresh(): Promise<void> {
    this.#state = (await this.#run.budgets.read(this.scope)) ?? this.#state;
    await this.#outer?.refresh();
  }

  async require(amounts: Required): Promise<void> {
    await this.refresh();
    const exceeded = exceededBy(amounts, await this.#chain());
    if (exceeded === undefined) return;
    await this.#note(exceeded);
    throw atLimit(exceeded, this.#run.threadId);
  }

  async hold(
    id: string,
    { stepKey, attempt }: { stepKey: string | undefined; attempt: number },
    request: Amounts,
  ): Promise<Exceeded | undefined> {
    const { ticket, signal, threadId, budgets } = this.#run;
    await this.time.record();
    const askedAt = performance.now();
    for (;;) {
      const answer = await budgets.reserve(ticket, { id, stepKey, attempt, scopes: this.scopes, request });
      if ("reserved" in answer) return undefined;
      if ("lost" in answer) {
        this.#run.lose(new LeaseLostError(`The thread "${threadId}" was taken over by another run.`));
        throw this.#run.leave();
      }
      const { exceeded } = answer;
      if (await budgets.sweep(this.scopes)) continue;
      if (!mayBeFreed(exceeded)) {
        await this.#note(exceeded);
        return exceeded;
      }
      await this.time.waiting(() => new Promise((resolve) => setTimeout(resolve, HOLD_LOOK_MS)));
      signal.throwIfAborted();
      // A stream whose reader has left, or waits for this very call, never ends.
      if (performance.now() - askedAt > HOLD_PATIENCE_MS) await this.#run.settleAbandoned(HOLD_PATIENCE_MS);
    }
  }

  settle(id: string, actual: Amounts | undefined): Promise<void> {
    return this.#run.budgets.settle(id, actual);
  }

  /** Whether something limits supersteps, or the time in which they may start. */
  get limitsSupersteps(): boolean {
    const { iterations, activeMs, deadline } = this.#state.allowed;
    const own = iterations !== undefined || activeMs !== undefined || deadline !== undefined;
    return own || this.#outer?.limitsSupersteps === true;
  }

  /** Counts a superstep when its first node starts; throws where a limit does not allow it. */
  beginSuperstep(superstep: Superstep): Promise<void> {
    const name = JSON.stringify(superstep);
    const begun = this.#supersteps.get(name) ?? this.#countSuperstep(superstep);
    this.#supersteps.set(name, begun);
    return begun;
  }

  async #countSuperstep(superstep: Superstep): Promise<void> {
    await this.time.record();
    const exceeded = await this.#run.budgets.beginSuperstep(superstep, this.scopes);
    if (exceeded === undefined) return;
    await this.#note(exceeded);
    this.refuse(exceeded, "llm");
  }

  /** The node begins that wraps the thread up. */
  async beginWrapUp(): Promise<void> {
    await this.#run.budgets.beginWrapUp(this.scope);
    this.#state = { ...this.#state, wrappingUp: true };
  }

  refuse(exceeded: Exceeded, kind: "llm" | "tool"): never {
    const { threadId } = this.#run;
    const { policy, of } = this.#policy();
    if (policy === "finish" && !of.#state.wrappingUp) throw finishing(exceeded, threadId, of.scope);
    if (policy === "fail" && kind === "llm") throw new BudgetExceededError(limitMessage(exceeded), { threadId });
    throw atLimit(exceeded, threadId);
  }

  /** What a refused call does in the scope; undefined where nothing is said. */
  get onExceeded(): OnExceeded | undefined {
    return this.#own.onExceeded ?? this.#outer?.onExceeded;
  }

  /** The scope's own deadline, as the code gave it or a person moved it. */
  get deadline(): Date | undefined {
    return this.#state.allowed.deadline;
  }

  /** The deadline has passed while the run is at work: it stops, and what is under way is told. */
  async endAtDeadline(): Promise<void> {
    await this.refresh();
    const [allowed, now] = [BigInt(this.deadline?.getTime() ?? 0), BigInt(Date.now())];
    const none = { reserved: 0n, requested: 0n };
    const exceeded: Exceeded = { scope: this.scope, limit: "deadline", allowed, spent: now, ...none };
    await this.#note(exceeded);
    const { threadId } = this.#run;
    const message = limitMessage(exceeded);
    const { policy, of } = this.#policy();
    if (policy === "fail") return this.#run.stop(new BudgetExceededError(message, { threadId }));
    if (policy === "pause") return this.#run.stop(drained({ kind: "limit", threadId, message }));
    if (of !== this) return this.#run.stop(finishing(exceeded, threadId, of.scope));
    // This run cannot go on: its signal has fired. The next one wraps up.
    const dueAt = (await this.#run.wakeNow("its deadline is over")).toISOString();
    this.#run.stop(drained({ kind: "due", threadId, dueAt, message: `${message} Run it with null: it wraps up.` }));
  }

  /** What the innermost scope says that says anything. */
  #policy(): { policy: OnExceeded; of: RunPurse } {
    const { onExceeded } = this.#own;
    if (onExceeded !== undefined || this.#outer === undefined) return { policy: onExceeded ?? "pause", of: this };
    return this.#outer.#policy();
  }

  async #note(exceeded: Exceeded): Promise<void> {
    await this.#run.budgets.noteExceeded(this.scopes, exceeded);
    for (let purse: RunPurse | undefined = this; purse !== undefined; purse = purse.#outer)
      purse.#state = { ...purse.#state, exceeded: true };
  }

  /** How this scope and those around it stand now. */
  async #chain(): Promise<BudgetState[]> {
    const states = await Promise.all(this.scopes.map((scope) => this.#run.budgets.read(scope)));
    return states.filter((state) => state !== undefined);
  }
}

/**
 * Calls under way hold their estimate, and may take less. A call that is counted stays counted: to wait for one could mean
 * to wait for the very tool that this call is made in.
 */
function mayBeFreed({ limit, allowed, spent, requested }: Exceeded): boolean {
  return (limit === "usd" || limit === "tokens") && spent + requested <= allowed;
}
