// Operations: named effects, declared once at module level. A fresh process (a worker, the CLI, a later version of
// the app) can look such an effect up or undo it; a closure inside a node dies with its process.
import { type BreakerPolicy, checkBreaker } from "../core/breaker.js";
import type { StepContext } from "../core/context.js";
import { InvalidOptionError } from "../core/errors.js";
import { MAX_TIMER_MS, positiveMs } from "../core/lease.js";
import type { LookupAnswer } from "../core/lookup.js";
import { knownOptions } from "../core/options.js";
import { type Classifier, checkRetry, type RetryPolicy } from "../core/retry.js";
import type { Effect } from "../core/step.js";
import { checkVersion } from "../core/version.js";

/** Asks the world whether an effect happened. Gets the RECORDED input, and the key that the provider was given. */
export type LookupFunction<I, O> = (args: {
  idempotencyKey: string;
  input: I;
  signal: AbortSignal;
}) => Promise<LookupAnswer<O>>;

/** How failures of a step are told apart and tried again. */
export interface RetryOptions {
  /** One layer of retries: leave those of the client inside off. */
  readonly retry?: RetryPolicy;
  /**
   * Says what an error means: `transient-not-sent` (try again), `unknown-sent` (a write is looked up first), or
   * `permanent`. Undefined leaves it to the pack, which knows HTTP statuses and Node's codes. An error that it does not
   * know is `unknown-sent`.
   */
  readonly classify?: Classifier;
  /**
   * Stops calling an effect that keeps failing, in all workers at once: after `threshold` failures in a row nothing is
   * sent for `cooldownMs`, then one probe. Shared under the effect's name. @default none
   */
  readonly breaker?: BreakerPolicy;
}

/** What the pack may do with a write whose outcome is not known. Times in milliseconds. */
export interface EffectOptions<I, O> extends RetryOptions {
  /** After this the call is given up. A write is then in doubt, because its request may have arrived. @default 60000 */
  readonly timeoutMs?: number;
  /**
   * The provider deduplicates by `idempotencyKey`: an unfinished call is sent again with the same key while the
   * provider surely still knows it. Needs `keyLifetimeMs`.
   * @default false
   */
  readonly idempotent?: boolean;
  /** For how long the provider remembers a key (Stripe: 24 hours). */
  readonly keyLifetimeMs?: number;
  /** Asks the world. Without it, and when it cannot tell, a person is asked. */
  readonly lookup?: LookupFunction<NoInfer<I>, NoInfer<O>>;
  /**
   * How long after the last moment at which a request could have been sent "it did not happen" is believed. A
   * request can still be on the wire, and a provider's read side can lag. @default timeoutMs + lease + 60000
   */
  readonly settleMs?: number;
  /** `pause` asks a person by an interrupt, `throw` gives the node an OutcomeUnknownError. @default "pause" */
  readonly onUnknown?: "pause" | "throw";
  /** Undoes the effect. Recorded with the operation for the saga. */
  readonly compensate?: (args: { input: NoInfer<I>; receipt: NoInfer<O> }, context: StepContext) => Promise<void>;
}

export interface AnyOperation {
  readonly name: string;
  readonly version: string;
  readonly effect: Effect;
}

export interface Operation<I, O> extends AnyOperation, Readonly<EffectOptions<I, O>> {
  /** Lets threads that were begun with another version go on with this one. */
  readonly migrate?: {
    /** Brings an output that an older version recorded into the form of this one. */
    readonly output?: (output: unknown, from: string) => NoInfer<O> | Promise<NoInfer<O>>;
  };
  /** One remote call. Hand `idempotencyKey` to the provider and `signal` to the HTTP client. */
  readonly run: (input: I, context: StepContext) => Promise<O>;
}

/**
 * Declares an effect at module level: what it is called, how to run it, and how to find out whether it happened.
 *
 * @example
 * const postArticle = operation({
 *   name: "post-article", version: "1.0.0", effect: "write",
 *   run: (input: { title: string }, { idempotencyKey }) => api.post(input, { idempotencyKey }),
 *   lookup: async ({ idempotencyKey }) => {
 *     const post = await api.findByKey(idempotencyKey);
 *     return post ? { outcome: "happened", receipt: post } : { outcome: "did-not-happen" };
 *   },
 * });
 *
 * @throws InvalidOptionError when an option is not what it must be.
 */
export function operation<I, O>(definition: Operation<I, O>): Operation<I, O> {
  const { name, version, effect } = definition;
  if (typeof name !== "string" || name === "")
    throw new InvalidOptionError("Expected an operation's `name` to be a non-empty string.");
  checkVersion(`operation "${name}"`, version);
  if (effect !== "read" && effect !== "write") {
    throw new InvalidOptionError(
      `Expected \`effect\` of operation "${name}" to be "read" or "write", got ${JSON.stringify(effect)}.`,
    );
  }
  if (typeof definition.run !== "function")
    throw new InvalidOptionError(`Expected \`run\` of operation "${name}" to be a function.`);
  knownOptions(`operation "${name}"`, definition, ["name", "version", "effect", "run", "migrate", ...EFFECT_OPTIONS]);
  checkEffectOptions(`operation "${name}"`, definition);
  return definition;
}

const RETRY_OPTIONS = ["retry", "classify", "breaker"];
/** @internal */
export const EFFECT_OPTIONS = [
  "timeoutMs",
  "idempotent",
  "keyLifetimeMs",
  "lookup",
  "settleMs",
  "onUnknown",
  "compensate",
  ...RETRY_OPTIONS,
];

/** @internal */
export function checkEffectOptions(what: string, options: object): void {
  const { idempotent, keyLifetimeMs } = options as Partial<EffectOptions<unknown, unknown>>;
  const { onUnknown } = options as { onUnknown?: unknown };
  if (onUnknown !== undefined && onUnknown !== "pause" && onUnknown !== "throw") {
    throw new InvalidOptionError(
      `Expected \`onUnknown\` of ${what} to be "pause" or "throw", got ${JSON.stringify(onUnknown)}.`,
    );
  }
  for (const name of ["timeoutMs", "settleMs", "keyLifetimeMs"] as const) {
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined) positiveMs(`${name} of ${what}`, value, name === "timeoutMs" ? MAX_TIMER_MS : undefined);
  }
  if (idempotent !== undefined && typeof idempotent !== "boolean")
    throw new InvalidOptionError(
      `Expected \`idempotent\` of ${what} to be true or false, got ${JSON.stringify(idempotent)}.`,
    );
  if (idempotent === true && keyLifetimeMs === undefined) {
    throw new InvalidOptionError(
      `${what} is declared \`idempotent\` without \`keyLifetimeMs\`. Say for how long the provider remembers a key: a resend after that would be a second effect.`,
    );
  }
  checkRetry(what, (options as RetryOptions).retry);
  checkBreaker(what, (options as RetryOptions).breaker);
  for (const name of ["lookup", "compensate", "classify"] as const) {
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined && typeof value !== "function") {
      throw new InvalidOptionError(`Expected \`${name}\` of ${what} to be a function.`);
    }
  }
}
