// A circuit breaker for each effect, shared by all workers through the ledger: retries amplify an outage, and the worker
// that notices it first spares the others. Closed lets calls pass; open lets none; half open lets exactly one probe.
// Errors that are the call's own fault (4xx arguments) say nothing about the other side and do not count.
// Nygard, "Release It!", 2nd edition, chapter 5.
import { InvalidOptionError } from "./errors.js";
import type { FailureClass } from "./failure.js";
import { positiveMs } from "./lease.js";

export interface BreakerPolicy {
  /** Opens after so many failures in a row. */
  readonly threshold: number;
  /** After this time one probe is let through, in milliseconds. */
  readonly cooldownMs: number;
}

/** What a breaker says to a call. `openForMs`: come back then. */
export type Passage = { readonly pass: "closed" | "probe"; readonly failures: number } | { readonly openForMs: number };

/** The breakers' port: one row each, changed by compare-and-set. */
export interface Breakers {
  enter(name: string, policy: BreakerPolicy, probeMs: number): Promise<Passage>;
  succeeded(name: string): Promise<void>;
  failed(name: string, policy: BreakerPolicy): Promise<void>;
}

/** @throws InvalidOptionError for a policy that is none. */
export function checkBreaker(what: string, policy: unknown): void {
  if (policy === undefined) return;
  const { threshold, cooldownMs } = policy as BreakerPolicy;
  if (!Number.isInteger(threshold) || threshold < 1) {
    throw new InvalidOptionError(
      `Expected \`breaker.threshold\` of ${what} to be a positive integer, got ${String(threshold)}.`,
    );
  }
  positiveMs(`breaker.cooldownMs of ${what}`, cooldownMs);
}

/** Tells the breaker what became of a call that it let pass. A healthy one is not written to. */
export async function reportTo(
  breakers: Breakers,
  name: string,
  policy: BreakerPolicy,
  passage: Passage,
  verdict: "succeeded" | FailureClass,
): Promise<void> {
  if ("openForMs" in passage) return;
  if (verdict === "succeeded" || (verdict === "permanent" && passage.pass === "probe")) {
    if (passage.pass === "probe" || passage.failures > 0) await breakers.succeeded(name);
  } else if (verdict !== "permanent") await breakers.failed(name, policy);
}
