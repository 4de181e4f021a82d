// The degrade ladder: what a run makes do with when little is left.
import { InvalidOptionError } from "./errors.js";

export interface Rung<T> {
  /** Taken when less than this part of the scarcest limit is left: from 0 to 1. */
  readonly below: number;
  readonly use: Partial<T>;
}

export interface Ladder<T> {
  readonly full: T;
  readonly rungs: readonly Rung<T>[];
}

/**
 * Declares what to use as a budget runs low: the lowest rung that applies is laid over `full`. The words are yours.
 *
 * @throws InvalidOptionError for a rung that is not between 0 and 1.
 * @example
 * const tiers = degradeLadder({ model: "gpt-5", searches: 50 }, { below: 0.2, use: { model: "gpt-5-mini", searches: 10 } });
 * const { model, searches } = budget.pick(tiers);
 */
export function degradeLadder<T extends object>(full: T, ...rungs: readonly Rung<T>[]): Ladder<T> {
  for (const { below } of rungs) {
    if (typeof below === "number" && below > 0 && below <= 1) continue;
    throw new InvalidOptionError(`Expected \`below\` of a rung to be a number over 0, up to 1, got ${String(below)}.`);
  }
  return { full, rungs: [...rungs].sort((a, b) => b.below - a.below) };
}

/** The `below` of the lowest rung that applies; 1 while none does. */
export function rungAt<T>({ rungs }: Ladder<T>, ratio: number): number {
  return Math.min(1, ...rungs.filter(({ below }) => ratio < below).map(({ below }) => below));
}

/** What the ladder says when that part is left. Of rungs that apply the lowest counts, over those above it. */
export function pick<T>({ full, rungs }: Ladder<T>, ratio: number): T {
  return Object.assign({}, full, ...rungs.filter(({ below }) => ratio < below).map(({ use }) => use));
}
