// A database of its own for each test file, copied from the migrated template, and ledgers on it.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, expect, inject } from "vitest";
import { type Ledger, type LedgerOptions, openLedger } from "../../src/index.js";
import { DATABASE, type OpenedLedger } from "../../src/openLedger.js";
import type { PooledDatabase } from "../../src/postgres/pool.js";

export function databaseUrl(name: string): string {
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${name}`;
  return url.href;
}

export async function admin<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Creates a database and returns its address; empty when it is not a copy of the template. */
export async function createDatabase(options: { empty?: boolean } = {}): Promise<string> {
  const name = `t_${randomBytes(6).toString("hex")}`;
  const template = options.empty === true ? "template0" : inject("template");
  // Two files that copy the template at once would disturb each other: PostgreSQL refuses a template that is in use.
  await admin(async (client) => {
    await client.query("select pg_advisory_lock(7301)");
    await client.query(`create database ${name} template ${template}`);
  });
  return databaseUrl(name);
}

/** A copy of a database as it stands. Waits until nobody is connected to it: killed processes leave sessions behind. */
export async function copyDatabase(url: string): Promise<string> {
  const name = `t_${randomBytes(6).toString("hex")}`;
  const source = new URL(url).pathname.slice(1);
  const attempt = () =>
    admin((client) => client.query(`create database ${name} template ${source}`)).then(
      () => true,
      () => false,
    );
  await expect.poll(attempt, { timeout: 10_000 }).toBe(true);
  return databaseUrl(name);
}

/** A test file's database: opened ledgers are closed at its end. */
export async function testDatabase(options: { empty?: boolean } = {}) {
  const url = await createDatabase(options);
  const opened: Ledger[] = [];
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on("error", () => {});
  afterAll(async () => {
    await Promise.all(opened.map((ledger) => ledger.close()));
    await pool.end();
  });
  return {
    url,
    sql: async <Row extends object = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> =>
      (await pool.query(text, values)).rows as Row[],
    openLedger: (extra: LedgerOptions = {}): OpenedLedger => {
      const ledger = openLedger({ url, ...extra }) as OpenedLedger;
      opened.push(ledger);
      return ledger;
    },
    /** Moves the ledger's clock: tests of hours take no time. */
    advance: async (ms: number): Promise<void> => {
      await pool.query("update longhaul.clock set offset_ms = offset_ms + $1", [ms]);
    },
  };
}

export type TestDatabase = Awaited<ReturnType<typeof testDatabase>>;

export function databaseOf(ledger: OpenedLedger): Promise<PooledDatabase> {
  return ledger[DATABASE]();
}
