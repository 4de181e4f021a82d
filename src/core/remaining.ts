// What is left of a budget.
import { type BudgetState, NOTHING, type StoredLimits, type Totals } from "./budget.js";

/** What of each limit is left, calls under way counted as spent; undefined where there is none. */
export function leftOf({ allowed, spent, reserved, kept, wrappingUp }: BudgetState): Omit<StoredLimits, "deadline"> {
  const back = wrappingUp ? NOTHING : kept;
  const left = (name: "tokens" | "modelCalls" | "toolCalls") => {
    const limit = allowed[name];
    return limit === undefined ? undefined : Math.max(0, limit - spent[name] - reserved[name] - back[name]);
  };
  const usd =
    allowed.nanoUsd === undefined ? undefined : allowed.nanoUsd - spent.nanoUsd - reserved.nanoUsd - back.nanoUsd;
  const count = (name: "iterations" | "activeMs") => {
    const limit = allowed[name];
    return limit === undefined ? undefined : Math.max(0, limit - spent[name]);
  };
  return {
    nanoUsd: usd !== undefined && usd < 0n ? 0n : usd,
    tokens: left("tokens"),
    modelCalls: left("modelCalls"),
    toolCalls: left("toolCalls"),
    iterations: count("iterations"),
    activeMs: count("activeMs"),
  };
}

/** How much of the scarcest limit is left, from 1 to 0; 1 without limits. */
export function remainingRatio(state: BudgetState): number {
  const left = leftOf(state);
  const ratios = (Object.keys(left) as (keyof typeof left)[]).map((name) => {
    const limit = state.allowed[name];
    if (limit === undefined) return 1;
    return Number(limit) === 0 ? 0 : Number(left[name]) / Number(limit);
  });
  return Math.min(1, ...ratios);
}

/** The part `share` of the least that is left in any of the scopes, limit by limit, within what is asked for as well. */
export function shareOf(share: number, scopes: readonly BudgetState[], asked: StoredLimits): StoredLimits {
  const least = (name: keyof Totals): bigint | number | undefined => {
    const lefts = scopes.map((scope) => leftOf(scope)[name]).filter((left) => left !== undefined);
    const all = [...lefts.map((left) => portion(left, share)), asked[name]].filter((limit) => limit !== undefined);
    const [first] = all.sort((a, b) => (a < b ? -1 : 1));
    return first;
  };
  return {
    nanoUsd: least("nanoUsd") as bigint | undefined,
    tokens: least("tokens") as number | undefined,
    modelCalls: least("modelCalls") as number | undefined,
    toolCalls: least("toolCalls") as number | undefined,
    iterations: least("iterations") as number | undefined,
    activeMs: least("activeMs") as number | undefined,
    deadline: asked.deadline,
  };
}

function portion(amount: bigint | number, share: number): bigint | number {
  const part = (BigInt(amount) * BigInt(Math.ceil(share * SHARE_PARTS - 1e-3))) / BigInt(SHARE_PARTS);
  return typeof amount === "bigint" ? part : Number(part);
}

/** Fine enough for a third of nine to be three; what three thirds are over the whole is refused by the whole. */
const SHARE_PARTS = 1_000_000_000;
