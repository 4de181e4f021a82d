// The one layer that tries again: how often, and how long to wait. Layers that multiply turn four tries into 28.
import { fullJitterGenerator } from "cockatiel";
import { InvalidOptionError } from "./errors.js";
import { classify, FAILURE_CLASSES, type FailureClass, retryAfterMs } from "./failure.js";
import { knownOptions } from "./options.js";

/** How a step is tried again. */
export interface RetryPolicy {
  /** After so many failures the step fails; 1 never tries again. @default 5 */
  readonly failures?: number;
}

/** Says what an error means before the pack's own classifier does; undefined leaves it to that one. */
export type Classifier = (error: unknown) => FailureClass | undefined;

/**
 * A nearer time is waited for in the process: that costs less than to load the thread again. For a farther one the thread
 * is left, and the wake stands beside the change that needs it.
 */
export const IN_PROCESS_WAIT_MS = 30_000;
/** A dependency that fails five times in a row over half a minute is down, not unlucky. */
const MAX_FAILURES = 5;
/** A run that has tried again a hundred times is in an outage that more requests make worse. */
export const RETRIES_PER_RUN = 100;
const JITTER = { generator: fullJitterGenerator, initialDelay: 200, maxDelay: 30_000, exponent: 2 };

export function maxFailures(policy: RetryPolicy | undefined): number {
  return policy?.failures ?? MAX_FAILURES;
}

/** @throws InvalidOptionError for a cap that is not a positive whole number. */
export function checkRetry(what: string, policy: unknown): void {
  if (policy === undefined) return;
  if (typeof policy !== "object" || policy === null)
    throw new InvalidOptionError(
      `Expected \`retry\` of ${what} to be an object such as { failures: 3 }, got ${String(policy)}.`,
    );
  knownOptions(`\`retry\` of ${what}`, policy, ["failures"]);
  const { failures } = policy as { failures?: unknown };
  if (failures === undefined || (typeof failures === "number" && Number.isInteger(failures) && failures >= 1)) return;
  throw new InvalidOptionError(
    `Expected \`retry.failures\` of ${what} to be a positive integer (1 never tries again), got ${String(failures)}.`,
  );
}

/** What the error means: the caller's word first. A classifier that throws, or answers what is no class, has said nothing. */
export function classifyBy(classifier: Classifier | undefined, error: unknown): FailureClass {
  try {
    const said: unknown = classifier?.(error);
    // An async one answers too late to count; its failure must not end the process.
    if (said instanceof Promise) said.catch(() => undefined);
    return FAILURE_CLASSES.find((known) => known === said) ?? classify(error);
  } catch {
    return classify(error);
  }
}

/**
 * The wait before the next attempt, in milliseconds. `failures` counts those so far (1 after the first). A well-formed
 * `Retry-After` wins over the backoff; one of 0 still gets the jitter, so that a crowd does not come back as one.
 *
 * Full jitter: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function backoffMs(failures: number, error: unknown): number {
  const asked = waitAskedFor(error);
  const [jitter] = fullJitterGenerator(asked === 0 ? 0 : failures - 1, JITTER);
  return asked === undefined || asked === 0 ? Math.max(1, jitter) : asked;
}

function waitAskedFor(error: unknown): number | undefined {
  try {
    return retryAfterMs(error);
  } catch {
    // An error that cannot be read asks for nothing.
    return undefined;
  }
}
