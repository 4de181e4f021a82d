import { randomBytes } from "node:crypto";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode, type Ledger, openLedger } from "../../src/index.js";
import { admin, type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, runScript } from "../support/script.js";

const INJECTION = 'x"; create table public.pwned(a int); --';
/** Legal as a name, and the end of a dollar-quoted function body. */
const DOLLARS = "a$$; create table public.pwned(a int); --";
const LEGAL = ["acme-eu", "Select", "tenant 7; drop schema public", "mandant.äöü", "{schema}", "x".repeat(63)];
const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase({ empty: true });
});

const config = { configurable: { thread_id: "t" } };

/** Runs a graph with a step, and reads its state back. */
async function run(ledger: Ledger): Promise<string[]> {
  const builder = new StateGraph(State)
    .addNode(
      "pay",
      durableNode(State, async (_state, { step }) => ({ log: [await step.write("pay", {}, async () => "paid")] })),
    )
    .addEdge(START, "pay")
    .addEdge("pay", END);
  const graph = durableGraph(builder, { ledger });
  await graph.invoke({ log: [] }, config);
  return (await graph.getState(config)).values.log;
}

const tablesIn = async (schema: string) =>
  (await db.sql("select 1 from pg_tables where schemaname = $1", [schema])).length;

describe("SEC-02: the schema's name and the role's rights", () => {
  it.each(LEGAL)("SEC-02: the legal name %j is quoted and works", async (schema) => {
    expect(await run(db.openLedger({ schema }))).toEqual(["paid"]);
    expect(await tablesIn(schema)).toBeGreaterThan(8);
    expect(await tablesIn("public")).toBe(0);
  });

  it.each(["a$$b", "a$&b", "a$1b", "a$`b", DOLLARS])(
    "SEC-02: the legal name %j reaches its own schema and no other",
    async (schema) => {
      expect(await run(db.openLedger({ schema }))).toEqual(["paid"]);
      expect(await tablesIn(schema)).toBeGreaterThan(8);
    },
  );

  it("SEC-02: the command line takes a name that needs quotes", async () => {
    await run(db.openLedger({ schema: "Tenant-9" }));
    const shown = await longhaul(db.url, "show", "t", "--schema", "Tenant-9");
    expect(shown).toMatchObject({ code: 0, lines: [{ name: "pay", state: "SUCCEEDED" }] });
  });

  it.each([INJECTION, "x".repeat(64), "ä".repeat(32), "", "a\0b", "pg_temp", 'a"b'])(
    "SEC-02: %j is refused before any SQL",
    async (schema) => {
      let sent = 0;
      const pool = {
        query: async () => Promise.reject(new Error(`statement ${++sent}`)),
        connect: async () => Promise.reject(new Error(`connection ${++sent}`)),
        end: async () => {},
      };
      expect(() => openLedger({ pool, schema })).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION", status: 400 }),
      );
      expect(sent).toBe(0);
    },
  );

  it("SEC-02: the injected table never exists, also by way of the command line", async () => {
    const refused = await runScript("src/cli/main.ts", ["runs", "--json", "--url", db.url, "--schema", INJECTION]);
    expect(refused).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
    expect(await db.sql("select to_regclass('public.pwned') as pwned")).toEqual([{ pwned: null }]);
  });

  it("SEC-02: a role that may not create schemas sets up and uses one that was made for it", async () => {
    const role = `tenant_${randomBytes(4).toString("hex")}`;
    await admin((client) => client.query(`create role ${role} login password 'secret'`));
    await db.sql(`create schema "acme-eu-made" authorization ${role}`);
    const url = new URL(db.url);
    Object.assign(url, { username: role, password: "secret" });
    const pool = new pg.Pool({ connectionString: url.href, max: 3 });
    await expect(pool.query("create schema of_my_own")).rejects.toThrow("permission denied");
    // Twice: the second opening finds everything there.
    for (let i = 0; i < 2; i++) {
      const ledger = openLedger({ pool, schema: "acme-eu-made" });
      expect(await run(ledger)).toContain("paid");
    }
    await pool.end();
  });
});
