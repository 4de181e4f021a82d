// One sweep: what is due by time alone is done, with or without a worker. Any process may do it at any time; those that do
// it in the background take turns, so that it happens about once a second however many they are.
import { hostname } from "node:os";
import { noteSweep, sinceSweepMs } from "../postgres/due.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { watched } from "./alerts.js";
import { SWEEPS, type Sweep } from "./sweeps.js";

/** How much each sweep found, by its name. */
export type Swept = Readonly<Record<string, number>>;

/** @throws what the first sweep threw that failed; those after it are done all the same. */
export async function sweepDatabase(database: PooledDatabase, sweeps: readonly Sweep[] = SWEEPS): Promise<Swept> {
  const found: Record<string, number> = {};
  const errors: unknown[] = [];
  for (const { name, sweep } of sweeps) {
    try {
      found[name] = await sweep(database);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  // Noted when all of it is done: a sweep that always fails must not look like one that was done.
  await noteSweep(database, `process ${process.pid} on ${hostname()}`);
  return found;
}

/** Sweeps of several processes take turns at this share of the poll, so that none of them is late by two polls. */
const TURN_SHARE = 0.8;

/** Sweeps unless somebody has just done so. Undefined: somebody has. */
export function sweepInTurn(database: PooledDatabase, pollMs: number): Promise<Swept | undefined> {
  return watched(database, async () => {
    const sinceMs = await sinceSweepMs(database);
    // A clock that was set back is no reason to wait.
    if (sinceMs !== undefined && sinceMs >= 0 && sinceMs < pollMs * TURN_SHARE) return undefined;
    return sweepDatabase(database);
  });
}
