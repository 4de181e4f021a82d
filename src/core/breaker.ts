// A circuit breaker for each effect and tenant, shared by all workers through the ledger: retries amplify an outage, and the worker
// that notices it first spares the others. Closed lets calls pass; open lets none; half open lets exactly one probe.
// Errors that are the call's own fault (4xx arguments) say nothing about the other side and do not count.
// Nygard, "Release It!", 2nd edition, chapter 5.
import { InvalidOptionError } from "./errors.js";
import type { FailureClass } from "./failure.js";
import { canonicalJson, sha256 } from "./key.js";
import { positiveMs } from "./lease.js";
import { knownOptions } from "./options.js";

export interface BreakerPolicy {
  /** Opens after so many failures in a row. */
  readonly threshold: number;
  /** After this time one probe is let through, in milliseconds. */
  readonly cooldownMs: number;
  /**
   * Whose breaker it is, from the call's input: one customer's revoked account does not stop the others. @default all have one
   */
  // biome-ignore lint/suspicious/noExplicitAny: the input's type is the effect's, which names its policy in a place that knows it
  readonly tenant?: (input: any) => string;
}

/** The breaker that one call meets. */
export interface CallBreaker extends BreakerPolicy {
  readonly name: string;
}

/** @throws InvalidOptionError when `tenant` throws or names nobody: before the call, and before its intent. */
export function breakerFor(effect: string, policy: BreakerPolicy | undefined, input: unknown): CallBreaker | undefined {
  if (policy?.tenant === undefined) return policy && { ...policy, name: effect };
  let tenant: unknown;
  try {
    tenant = policy.tenant(input);
  } catch (error) {
    throw new InvalidOptionError(`\`breaker.tenant\` of "${effect}" threw: it must name a tenant for every input.`, {
      cause: error,
    });
  }
  if (typeof tenant === "string" && tenant !== "") return { ...policy, name: canonicalJson([effect, sha256(tenant)]) };
  throw new InvalidOptionError(
    `Expected \`breaker.tenant\` of "${effect}" to return a non-empty string, got ${typeof tenant}.`,
  );
}

/** What a breaker says to a call. `openForMs`: come back then. */
export type Passage = { readonly pass: "closed" | "probe"; readonly failures: number } | { readonly openForMs: number };

/** The breakers' port: one row each, changed by compare-and-set. */
export interface Breakers {
  enter(name: string, policy: BreakerPolicy, probeMs: number): Promise<Passage>;
  succeeded(name: string): Promise<void>;
  failed(name: string, policy: BreakerPolicy): Promise<void>;
}

/** A breaker that needs more failures than this never opens. */
const MAX_THRESHOLD = 1_000_000;

/** @throws InvalidOptionError for a policy that is none. */
export function checkBreaker(what: string, policy: unknown): void {
  if (policy === undefined) return;
  if (typeof policy !== "object" || policy === null)
    throw new InvalidOptionError(
      `Expected \`breaker\` of ${what} to be { threshold, cooldownMs, tenant? }, got ${String(policy)}.`,
    );
  knownOptions(`\`breaker\` of ${what}`, policy, ["threshold", "cooldownMs", "tenant"]);
  const { threshold, cooldownMs, tenant } = policy as BreakerPolicy;
  if (tenant !== undefined && typeof tenant !== "function")
    throw new InvalidOptionError(`Expected \`breaker.tenant\` of ${what} to be a function of the input.`);
  if (!Number.isInteger(threshold) || threshold < 1 || threshold > MAX_THRESHOLD) {
    throw new InvalidOptionError(
      `Expected \`breaker.threshold\` of ${what} to be a whole number from 1 to ${MAX_THRESHOLD}, got ${String(threshold)}.`,
    );
  }
  positiveMs(`breaker.cooldownMs of ${what}`, cooldownMs);
}

/** Tells the breaker what became of a call that it let pass. A healthy one is not written to. */
export async function reportTo(
  breakers: Breakers,
  { name, ...policy }: CallBreaker,
  passage: Passage,
  verdict: "succeeded" | FailureClass,
): Promise<void> {
  if ("openForMs" in passage) return;
  if (verdict === "succeeded" || (verdict === "permanent" && passage.pass === "probe")) {
    if (passage.pass === "probe" || passage.failures > 0) await breakers.succeeded(name);
  } else if (verdict !== "permanent") await breakers.failed(name, policy);
}
