// A run's way to its budgets: its thread's own scope, and those of the run that it is made in, which pay as well.
import type { Amounts, Budget, BudgetLedger, BudgetState, Exceeded, Purse } from "../core/budget.js";
import { remainingRatio, storedLimits } from "../core/budget.js";
import { BudgetExceededError, LeaseLostError } from "../core/errors.js";
import { type Ladder, pick } from "../core/ladder.js";
import type { RunTicket } from "../core/ledger.js";
import { atLimit, limitMessage } from "./leave.js";

/** What a node sees of its thread's budget. */
export interface BudgetView {
  /** The scope's name; empty without a budget. */
  readonly scope: string;
  /** How much of the scarcest limit is left, from 1 to 0, calls under way counted as spent. 1 without a budget. */
  readonly remainingRatio: number;
  /** What the scope has spent, in nano-dollars. 0 without a budget. */
  readonly spentNanoUsd: bigint;
  /** What a `degradeLadder` says now. */
  pick<T>(ladder: Ladder<T>): T;
  /** Looks again: the figures are those of the node's start. */
  refresh(): Promise<void>;
}

/** What a purse needs of the run whose it is. */
export interface PayingRun {
  readonly threadId: string;
  readonly ticket: RunTicket;
  readonly budgets: BudgetLedger;
  readonly signal: AbortSignal;
  lose(error: LeaseLostError): void;
  leave(): Error;
}

/** How often a call that waits for others looks whether they have left enough. */
const HOLD_LOOK_MS = 250;

export class RunPurse implements Purse, BudgetView {
  readonly #run: PayingRun;
  readonly #ledger: BudgetLedger;
  readonly #onExceeded: "pause" | "fail";
  readonly #outer: RunPurse | undefined;
  #state: BudgetState;

  private constructor(
    run: PayingRun,
    ledger: BudgetLedger,
    budget: Budget,
    state: BudgetState,
    outer: RunPurse | undefined,
  ) {
    this.#run = run;
    this.#ledger = ledger;
    this.#onExceeded = budget.onExceeded ?? "pause";
    this.#state = state;
    this.#outer = outer;
  }

  /** Opens the thread's scope below that of the run around it; undefined when neither has a budget. */
  static async open(
    run: PayingRun,
    budget: Budget | undefined,
    outer: RunPurse | undefined,
  ): Promise<RunPurse | undefined> {
    if (budget === undefined && outer === undefined) return undefined;
    const { ticket, budgets } = run;
    const limits = storedLimits(budget ?? {});
    const state = await budgets.open(ticket, ticket.threadId, outer?.scope, limits);
    return new RunPurse(run, budgets, budget ?? { onExceeded: outer?.onExceeded ?? "pause" }, state, outer);
  }

  get scope(): string {
    return this.#state.scope;
  }

  get onExceeded(): "pause" | "fail" {
    return this.#onExceeded;
  }

  /** Every scope that pays, this one first. */
  get scopes(): readonly string[] {
    return [this.scope, ...(this.#outer?.scopes ?? [])];
  }

  /** Whether some scope limits dollars: then a call without a known price cannot be let through. */
  get limitsUsd(): boolean {
    return this.#state.allowed.nanoUsd !== undefined || this.#outer?.limitsUsd === true;
  }

  get remainingRatio(): number {
    return Math.min(remainingRatio(this.#state), this.#outer?.remainingRatio ?? 1);
  }

  get spentNanoUsd(): bigint {
    return this.#state.spent.nanoUsd;
  }

  pick<T>(ladder: Ladder<T>): T {
    return pick(ladder, this.remainingRatio);
  }

  async refresh(): Promise<void> {
    this.#state = (await this.#ledger.read(this.scope)) ?? this.#state;
    await this.#outer?.refresh();
  }

  async hold(
    id: string,
    { stepKey, attempt }: { stepKey: string | undefined; attempt: number },
    request: Amounts,
  ): Promise<Exceeded | undefined> {
    const { ticket, signal, threadId } = this.#run;
    for (;;) {
      const answer = await this.#ledger.reserve(ticket, { id, stepKey, attempt, scopes: this.scopes, request });
      if ("reserved" in answer) return undefined;
      if ("lost" in answer) {
        this.#run.lose(new LeaseLostError(`The thread "${threadId}" was taken over by another run.`));
        throw this.#run.leave();
      }
      const { exceeded } = answer;
      if (await this.#ledger.sweep(this.scopes)) continue;
      if (!mayBeFreed(exceeded)) return exceeded;
      await new Promise((resolve) => setTimeout(resolve, HOLD_LOOK_MS));
      signal.throwIfAborted();
    }
  }

  settle(id: string, actual: Amounts | undefined): Promise<void> {
    return this.#ledger.settle(id, actual);
  }

  refuse(exceeded: Exceeded, kind: "llm" | "tool"): never {
    const { threadId } = this.#run;
    if (kind === "llm" && this.#onExceeded === "fail")
      throw new BudgetExceededError(limitMessage(exceeded), { threadId });
    throw atLimit(exceeded, threadId);
  }
}

/**
 * Calls under way hold their estimate, and may take less. A call that is counted stays counted: to wait for one could mean
 * to wait for the very tool that this call is made in.
 */
function mayBeFreed({ limit, allowed, spent, requested }: Exceeded): boolean {
  return (limit === "usd" || limit === "tokens") && spent + requested <= allowed;
}

/** What a node sees where nothing limits it. */
export const UNLIMITED: BudgetView = {
  scope: "",
  remainingRatio: 1,
  spentNanoUsd: 0n,
  pick: (ladder) => pick(ladder, 1),
  refresh: async () => {},
};
