/**
 * For tests of what your graph does to the world: a ledger of a test's own, crashes at named moments, a world that counts, and
 * hours that pass at once.
 *
 * @module
 */
import { DatabaseError, InvalidOptionError } from "../core/errors.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { moveClock } from "../postgres/clock.js";

export { assertNeedsReconciliation, assertOnce, type DoubtfulStep } from "./assertions.js";
export { type CountingWorld, countingWorld, type WorldEffect } from "./countingWorld.js";
export type { CrashPoint } from "./crash.js";
export { type TestLedger, type TestLedgerOptions, testLedger } from "./testLedger.js";
export { PausedError, type WithLedgerOptions, withLedger } from "./withLedger.js";

/**
 * Moves the ledger's clock on, for every process that uses its database: deadlines, retries and leases come due. There is no
 * way back. Never use it on a ledger that matters; it is refused where `NODE_ENV` is "production".
 *
 * @param ms milliseconds
 * @example
 * await advanceClock(ledger, 72 * 3_600_000);
 */
export async function advanceClock(ledger: Ledger, ms: number): Promise<void> {
  if (process.env["NODE_ENV"] === "production") {
    throw new DatabaseError("advanceClock() moves the clock of every thread of the ledger, and this is production.");
  }
  if (!Number.isInteger(ms) || ms < 0)
    throw new InvalidOptionError(`Expected \`ms\` to be a non-negative integer, got ${ms}.`);
  await moveClock(await databaseOf(ledger), ms);
}
