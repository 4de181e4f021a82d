// Opening a database as a ledger does, also in a process without a test runner.
import { setupCheckpoints } from "../../src/checkpoint/setup.js";
import { migrate } from "../../src/postgres/migrate.js";
import { createPool, PooledDatabase } from "../../src/postgres/pool.js";

export const SCHEMA = "longhaul";

/** What opening a ledger does to a database. */
export async function openDatabase(url: string, schema = SCHEMA): Promise<PooledDatabase> {
  const database = new PooledDatabase(createPool(url, 10), schema);
  await migrate(database);
  await setupCheckpoints(database, schema);
  return database;
}
