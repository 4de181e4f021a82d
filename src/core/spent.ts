// What a failed attempt had cost all the same: an answer that broke off in the middle was paid for until there. The
// error that the attempt threw belongs to the user's code and passes untouched, so the cost is noted beside it.
import type { Usage } from "./step.js";

const noted = new WeakMap<object, Usage>();

/** Notes what was spent before `error` was thrown, and returns the error. */
export function noteSpent(error: unknown, usage: Usage): unknown {
  if (typeof error === "object" && error !== null) noted.set(error, usage);
  return error;
}

/** What was spent before `error` was thrown, for those who only watch: it is left to be counted. */
export function spentBefore(error: unknown): Usage | undefined {
  return typeof error === "object" && error !== null ? noted.get(error) : undefined;
}

/** What two tries used together: each is paid. A price that is not known makes the sum unknown. */
export function sumOf(a: Usage, b: Usage): Usage {
  const unpriced = a.costNanoUsd === undefined || b.costNanoUsd === undefined;
  return {
    ...b,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costNanoUsd: unpriced ? undefined : (a.costNanoUsd ?? 0n) + (b.costNanoUsd ?? 0n),
    estimated: a.estimated || b.estimated,
  };
}

/** What was spent before `error` was thrown; told once, so that nothing counts it twice. */
export function takeSpent(error: unknown): Usage | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const usage = noted.get(error);
  noted.delete(error);
  return usage;
}
