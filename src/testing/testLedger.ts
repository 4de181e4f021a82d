// A ledger for one test: a database of its own on the server that is there, gone when the test is over; and ledgers on it that
// die at a named moment.
import { randomBytes } from "node:crypto";
import { DatabaseError, InvalidOptionError } from "../core/errors.js";
import { findDatabase } from "../findDatabase.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf, type LedgerOptions, openLedger } from "../openLedger.js";
import { moveClock } from "../postgres/clock.js";
import { createPool } from "../postgres/pool.js";
import { type CrashPoint, dyingPool, killingAt } from "./crash.js";

export interface TestLedgerOptions extends Omit<LedgerOptions, "pool"> {
  /**
   * A database of the server on which the test's own is made; its user must have the right to create databases.
   * @default where openLedger() would look: LONGHAUL_DATABASE_URL and the others, else the embedded server
   */
  readonly url?: string;
}

export interface TestLedger {
  readonly ledger: Ledger;
  /** The address of the test's database, for other processes. */
  readonly url: string;
  /** Moves the ledger's clock on: deadlines, retries and the leases of what has died come due. @param ms milliseconds */
  advanceClock(ms: number): Promise<void>;
  /**
   * Another ledger on the same database, which dies at a moment of a write: from then on the database hears nothing of it. What
   * was done is what a crash leaves. Its run ends with GraphDrained (`drainReason(error)?.kind` is "unrecorded" or "lost").
   * Then `advanceClock(60_000)`, and run the thread with `null` on `ledger`.
   *
   * @param how `disconnect`, or `kill`: the whole process by SIGKILL, for a test that started one
   */
  crashing(point: CrashPoint, how?: "disconnect" | "kill"): Ledger;
  /** Closes all of them, and drops the database. */
  close(): Promise<void>;
}

/**
 * Opens a ledger on a database of its own. Nothing of it is left after `close()`.
 *
 * @throws DatabaseError in production, and where no database can be made.
 * @example
 * const { ledger, close } = await testLedger();
 * afterAll(close);
 */
export async function testLedger(options: TestLedgerOptions = {}): Promise<TestLedger> {
  if (process.env["NODE_ENV"] === "production")
    throw new DatabaseError("testLedger() creates and drops databases, and this is production.");
  if ("pool" in options)
    throw new InvalidOptionError("testLedger takes a `url` and no `pool`: it makes a database of its own.");
  const { url: given, ...rest } = options;
  const server = given === undefined ? await findDatabase(process.env, options.onLine) : { url: given };
  const name = `longhaul_test_${randomBytes(6).toString("hex")}`;
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  await onServer(server.url, `create database ${name}`);
  const opened: { close(): Promise<unknown> }[] = [];
  const keep = <T extends { close(): Promise<unknown> }>(made: T): T => {
    opened.push(made);
    return made;
  };
  const ledger = keep(openLedger({ ...rest, url: url.href }));
  return {
    ledger,
    url: url.href,
    advanceClock: async (ms) => moveClock(await databaseOf(ledger), positive(ms)),
    crashing: (point, how = "disconnect") => {
      const pool = createPool(url.href, options.maxConnections ?? CONNECTIONS);
      keep({ close: () => pool.end() });
      return openLedger({ ...rest, pool: how === "kill" ? killingAt(pool, point) : dyingPool(pool, point) });
    },
    close: async () => {
      await Promise.all(opened.map((one) => one.close()));
      await onServer(server.url, `drop database if exists ${name} with (force)`);
      if ("release" in server) await server.release?.();
    },
  };
}

const CONNECTIONS = 4;

function positive(ms: number): number {
  if (Number.isInteger(ms) && ms >= 0) return ms;
  throw new InvalidOptionError(`Expected \`ms\` to be a non-negative integer, got ${ms}.`);
}

async function onServer(url: string, statement: string): Promise<void> {
  const pool = createPool(url, 1);
  try {
    await pool.query(statement);
  } catch (error) {
    throw new DatabaseError(
      `The test's database could not be made or dropped (${(error as Error).message}). Its user needs the right to create databases.`,
      { cause: error },
    );
  } finally {
    await pool.end();
  }
}
