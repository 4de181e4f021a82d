import pg from "pg";
import { describe, expect, it } from "vitest";
import { openLedger } from "../../src/index.js";
import { DATABASE, type OpenedLedger } from "../../src/openLedger.js";
import { latestVersion } from "../../src/postgres/migrate.js";
import { createDatabase } from "../support/database.js";
import { START_LOCK } from "../support/locks.js";
import { runScript, startScript } from "../support/script.js";

const CHILD = "test/cases/openLedger.child.ts";

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Sessions that wait for an advisory lock. */
async function waiting(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    "select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())",
  );
  return rows[0].n as number;
}

const versions = (url: string) =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      "select version, count(*)::int as rows from longhaul.migrations group by version order by version",
    );
    const tables = await client.query("select count(*)::int as n from pg_tables where schemaname = 'longhaul'");
    return { versions: rows as object[], tables: tables.rows[0].n as number };
  });

async function open(url: string): Promise<void> {
  const ledger = openLedger({ url, maxConnections: 2 }) as OpenedLedger;
  await ledger[DATABASE]();
  await ledger.close();
}

/** What a database looks like that one process set up with nobody in the way. */
async function expectComplete(url: string): Promise<void> {
  const found = await versions(url);
  expect(found).toEqual(await versions(await createDatabase()));
  expect(found.versions.at(-1)).toMatchObject({ version: latestVersion() });
  for (const version of found.versions) expect(version).toMatchObject({ rows: 1 });
}

describe("PG-01: many processes set up one empty database", () => {
  it("PG-01: eight of eight succeed at the same moment, and the version table has one row a migration", async () => {
    const url = await createDatabase({ empty: true });
    const children = await withClient(url, async (client) => {
      await client.query("select pg_advisory_lock($1)", [START_LOCK]);
      const started = Array.from({ length: 8 }, () => runScript(CHILD, [url]));
      await expect.poll(() => waiting(client), { timeout: 60_000 }).toBe(8);
      await client.query("select pg_advisory_unlock($1)", [START_LOCK]);
      return started;
    });
    for (const ended of await Promise.all(children)) {
      expect(ended).toMatchObject({ code: 0, stderr: "", lines: [{ event: "open" }] });
    }
    await open(url);
    await expectComplete(url);
  }, 120_000);

  it("PG-01: one that is killed in the middle of a migration leaves nothing half done, and those that wait go on", async () => {
    const url = await createDatabase({ empty: true });
    const victim = startScript(CHILD, [url, "stop"]);
    await withClient(url, async (client) => {
      await expect.poll(() => inTransaction(client), { timeout: 60_000 }).toBe(1);
      const others = Array.from({ length: 7 }, () => open(url));
      await expect.poll(() => waiting(client), { timeout: 60_000 }).toBe(7);
      victim.child.kill("SIGKILL");
      await Promise.all(others);
    });
    expect(await victim.ended).toMatchObject({ signal: "SIGKILL", lines: [{ event: "in the middle" }] });
    await open(url);
    await expectComplete(url);
  }, 120_000);
});

/** Sessions that stand still inside a transaction in which a table was made. */
async function inTransaction(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and state = 'idle in transaction' and query like '%create function%'",
  );
  return rows[0].n as number;
}
