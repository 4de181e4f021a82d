// What a node sees of its budget.
import { type Ladder, pick } from "../../core/ladder.js";
import type { Required } from "../../core/require.js";

/** What a node sees of the budget that it runs in. */
export interface BudgetView {
  /** The scope's name; empty without a budget. */
  readonly scope: string;
  /** Whether anything is limited, here or around. */
  readonly limited: boolean;
  /** How much of the scarcest limit is left, from 1 to 0, calls under way counted as spent. 1 without a budget. */
  readonly remainingRatio: number;
  /** What the scope has spent, in nano-dollars. 0 without a budget. */
  readonly spentNanoUsd: bigint;
  /** Whether a call in the scope was refused since its limits were last raised: something is then missing. */
  readonly exceeded: boolean;
  /** What a `degradeLadder` says now. Each change of rung is noted in the budget's history. */
  pick<T>(ladder: Ladder<T>): T;
  /** Looks again: the figures are those of the node's start. */
  refresh(): Promise<void>;
  /**
   * Pauses unless so much is left, as a call does that is refused; once the limit is raised, the node goes on. Nothing is
   * held back.
   *
   * @example
   * await budget.require({ usd: 0.5 });
   */
  require(amounts: Required): Promise<void>;
}

/** What a node sees where nothing limits it. */
export const UNLIMITED: BudgetView = {
  scope: "",
  limited: false,
  remainingRatio: 1,
  spentNanoUsd: 0n,
  exceeded: false,
  pick: (ladder) => pick(ladder, 1),
  refresh: async () => {},
  require: async () => {},
};
