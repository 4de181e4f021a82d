// Sweeping: what is due by time alone is done, with or without a worker. Any process may do it at any time; those that do
// it in the background take turns, so that it happens about once a second however many they are.
import { hostname } from "node:os";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { noteSweep, sinceSweepMs } from "../postgres/due.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { SWEEPS } from "./sweeps.js";

/** How much each sweep found, by its name. */
export type Swept = Readonly<Record<string, number>>;

/**
 * Does once what is due and needs no graph: threads whose run died become due. What they wait for is then done by a
 * worker, or by whoever runs them.
 *
 * @example
 * const { deadRuns } = await sweep(ledger);
 */
export async function sweep(ledger: Ledger): Promise<Swept> {
  return sweepDatabase(await databaseOf(ledger));
}

export async function sweepDatabase(database: PooledDatabase): Promise<Swept> {
  const found: Record<string, number> = {};
  for (const { name, sweep } of SWEEPS) found[name] = await sweep(database);
  // Noted when all of it is done: a sweep that always fails must not look like one that was done.
  await noteSweep(database, `process ${process.pid} on ${hostname()}`);
  return found;
}

/** Sweeps unless somebody has just done so. Undefined: somebody has. */
export async function sweepInTurn(database: PooledDatabase, everyMs: number): Promise<Swept | undefined> {
  const sinceMs = await sinceSweepMs(database);
  // A clock that was set back is no reason to wait.
  if (sinceMs !== undefined && sinceMs >= 0 && sinceMs < everyMs) return undefined;
  return sweepDatabase(database);
}
