// What the pages tell an operator to type into psql is valid on the schema of today.
import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openLedger } from "../../src/index.js";
import { databaseOf } from "../../src/openLedger.js";
import { createDatabase } from "../support/database.js";

/** The SQL blocks of a page; what is left out of an example (`…`) makes it no statement. */
function statementsOf(page: string): string[] {
  const blocks = [...readFileSync(page, "utf8").matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql = ""]) => sql);
  return blocks.flatMap((sql) => sql.split(/;[^\n]*\n/)).filter((sql) => sql.replace(/^--.*$/gm, "").trim() !== "");
}

const ROLES = ["longhaul_owner", "longhaul_app", "longhaul_read"];
let client: pg.Client;

beforeAll(async () => {
  const url = await createDatabase();
  const ledger = openLedger({ url });
  await databaseOf(ledger);
  await ledger.close();
  client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  for (const role of ROLES) await client.query(`create role ${role}`);
});
afterAll(async () => {
  await client.query("rollback");
  await client.end();
});

it.each(["README.md", "docs/operations.md"])("every statement of %s runs", async (page) => {
  const statements = statementsOf(page);
  expect(statements.length).toBeGreaterThan(0);
  for (const sql of statements) {
    const known = sql.replace("create schema longhaul ", "create schema longhaul_example ");
    await expect(client.query(known), sql).resolves.toBeDefined();
  }
});

it("a role with the rights of the page can do what a worker does, and a reader can read", async () => {
  for (const sql of statementsOf("docs/operations.md").filter((statement) => statement.includes("grant "))) {
    await client.query(sql);
  }
  await client.query("set local role longhaul_app");
  await client.query("update longhaul.threads set updated_at = updated_at");
  await client.query("reset role");
  await client.query("set local role longhaul_read");
  await client.query("select * from longhaul.costs");
  await client.query("savepoint before_write");
  await expect(client.query("delete from longhaul.steps")).rejects.toThrow(/permission denied/);
  await client.query("rollback to savepoint before_write");
  await client.query("reset role");
});
