// Whether so much is left as some work will need.
import type { BudgetState, Exceeded, LimitName, Limits } from "./budget.js";
import { checkLimits, storedLimits } from "./budgetOptions.js";
import { leftOf } from "./remaining.js";

/** What must be left. */
export type Required = Pick<Limits, "usd" | "tokens" | "modelCalls" | "toolCalls">;

const NAMES = { nanoUsd: "usd", tokens: "tokens", modelCalls: "modelCalls", toolCalls: "toolCalls" } as const;

/** The limit, of the outermost scope that has one, which leaves less. */
export function exceededBy(amounts: Required, scopes: readonly BudgetState[]): Exceeded | undefined {
  checkLimits("budget.require", amounts, Object.values(NAMES));
  const wanted = storedLimits(amounts);
  for (const state of [...scopes].reverse()) {
    const left = leftOf(state);
    for (const name of Object.keys(NAMES) as (keyof typeof NAMES)[]) {
      const [has, needs] = [left[name], wanted[name]];
      if (has === undefined || needs === undefined || needs <= has) continue;
      const limit: LimitName = NAMES[name];
      const kept = state.wrappingUp ? 0n : BigInt(state.kept[name]);
      return {
        scope: state.scope,
        limit,
        allowed: BigInt(state.allowed[name] ?? 0) - kept,
        spent: BigInt(state.spent[name]),
        reserved: BigInt(state.reserved[name]),
        requested: BigInt(needs),
      };
    }
  }
  return undefined;
}
