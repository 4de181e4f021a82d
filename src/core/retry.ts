// How long to wait before trying a step again: exponential backoff with full jitter, or what the other side asked for.
import { retryAfterMs } from "./failure.js";

/** Five failures of one step: a dependency that fails five times in a row over half a minute is down, not unlucky. */
export const MAX_FAILURES = 5;
const BASE_MS = 200;
const CAP_MS = 30_000;

/**
 * The wait before the next attempt, in milliseconds. `failures` counts those so far (1 after the first). A
 * well-formed `Retry-After` wins over the backoff.
 *
 * Full jitter: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function backoffMs(failures: number, error: unknown, random: () => number = Math.random): number {
  const asked = retryAfterMs(error);
  if (asked !== undefined) return asked;
  return Math.ceil(random() * Math.min(CAP_MS, BASE_MS * 2 ** (failures - 1)));
}
