// Moving the ledger's clock, for tests alone: nothing else writes its offset.
import type { Database } from "./pool.js";

export async function moveClock(database: Database, ms: number): Promise<void> {
  await database.query("move_clock", "update {schema}.clock set offset_ms = offset_ms + $1::bigint", [ms]);
}
