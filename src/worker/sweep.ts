// Sweeping by hand: what is due by time alone is done, with or without a worker.
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { type Swept, sweepDatabase } from "../sweep/sweepDatabase.js";

/**
 * Does once what is due and needs no graph: threads whose run died become due, deadlines are acted on. What threads then wait
 * for is done by a worker, or by whoever runs them.
 *
 * @example
 * const { deadRuns } = await sweep(ledger);
 */
export async function sweep(ledger: Ledger): Promise<Swept> {
  return sweepDatabase(await databaseOf(ledger));
}
