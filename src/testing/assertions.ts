// What a test of effects wants to know: that each happened exactly once, or that one waits for a person.
import { AssertionError } from "node:assert";
import { questionOf } from "../core/question.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import type { CountingWorld } from "./countingWorld.js";

/**
 * Every effect at the path happened exactly once: there is at least one, and no key came twice.
 *
 * @param path such as "/pay"; all effects without it
 * @throws AssertionError that names what happened how often.
 */
export function assertOnce(world: CountingWorld, path?: string): void {
  const effects = world.effects.filter((effect) => path === undefined || effect.path === path);
  const where = path === undefined ? "" : ` at ${path}`;
  if (effects.length === 0) throw new AssertionError({ message: `No effect${where} has happened.` });
  const counts = new Map<string, number>();
  for (const { path: at, key } of effects) counts.set(`${at} ${key}`, (counts.get(`${at} ${key}`) ?? 0) + 1);
  const twice = [...counts].filter(([, times]) => times > 1);
  if (twice.length === 0) return;
  const list = twice.map(([name, times]) => `${name} (${times} times)`).join(", ");
  throw new AssertionError({ message: `Effects${where} happened more than once under one key: ${list}.` });
}

export interface DoubtfulStep {
  /** For `settle(ledger, { idempotencyKey, … })`. */
  readonly idempotencyKey: string;
  readonly name: string;
  readonly node: string;
  readonly attempt: number;
}

/**
 * The outcome of a write of the thread is not known, and a lookup or a person must settle it.
 *
 * @param name of the step; any write without it
 * @returns the write, the oldest first where there are several
 * @throws AssertionError when there is none.
 */
export async function assertNeedsReconciliation(
  ledger: Ledger,
  threadId: string,
  name?: string,
): Promise<DoubtfulStep> {
  const steps = await unsettledSteps(await databaseOf(ledger), 500, threadId);
  const found = steps.find((step) => (name === undefined || step.name === name) && IN_DOUBT.has(step.state));
  if (found !== undefined) {
    const { key, position, attempt } = found;
    return { idempotencyKey: key, name: found.name, node: position.node, attempt };
  }
  const others = steps.map(
    (step) => `"${step.name}" ${step.state}${questionOf(step) === undefined ? "" : ` (${questionOf(step)})`}`,
  );
  throw new AssertionError({
    message: `No write${name === undefined ? "" : ` "${name}"`} of thread "${threadId}" needs reconciliation. Unsettled: ${others.join(", ") || "none"}.`,
  });
}

/** A write that is RUNNING and listed as unsettled was left by a process that is gone. */
const IN_DOUBT = new Set(["NEEDS_RECONCILIATION", "RUNNING"]);
