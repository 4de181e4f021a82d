// What a failed attempt had cost all the same: an answer that broke off in the middle was paid for until there. The
// error that the attempt threw belongs to the user's code and passes untouched, so the cost is noted beside it.
import type { Usage } from "./step.js";

const noted = new WeakMap<object, Usage>();

/** Notes what was spent before `error` was thrown, and returns the error. */
export function noteSpent(error: unknown, usage: Usage): unknown {
  if (typeof error === "object" && error !== null) noted.set(error, usage);
  return error;
}

/** What was spent before `error` was thrown; told once, so that nothing counts it twice. */
export function takeSpent(error: unknown): Usage | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const usage = noted.get(error);
  noted.delete(error);
  return usage;
}
