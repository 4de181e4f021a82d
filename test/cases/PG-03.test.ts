import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drainReason, durableGraph, durableNode, type Ledger, openLedger } from "../../src/index.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

let db: TestDatabase;
const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);
beforeAll(async () => {
  db = await testDatabase();
  process.on("uncaughtException", note).on("unhandledRejection", note);
});
afterAll(() => {
  process.off("uncaughtException", note).off("unhandledRejection", note);
  // The process lives: not one error came from a connection that nobody listened to.
  expect(unhandled).toEqual([]);
});

const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** pg_terminate_backend on every session of the ledger's pool; says how many there were. */
async function terminate(): Promise<number> {
  const rows = await db.sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'langgraph-longhaul'",
  );
  return rows.length;
}

/** A read, a write and a node after them. */
function paying(ledger: Ledger, during: (verb: "read" | "write") => Promise<void> = async () => {}) {
  const sent: string[] = [];
  const call = (verb: "read" | "write") => async () => {
    await during(verb);
    sent.push(verb);
    return verb;
  };
  const builder = new StateGraph(State)
    .addNode(
      "pay",
      durableNode(State, async (_state, { step }) => ({
        log: [await step.read("read", {}, call("read")), await step.write("write", {}, call("write"))],
      })),
    )
    .addNode("after", () => ({ log: ["after"] }))
    .addEdge(START, "pay")
    .addEdge("pay", "after")
    .addEdge("after", END);
  return { sent, graph: durableGraph(builder, { ledger }) };
}

async function expectOnce(thread: string, sent: readonly string[]): Promise<void> {
  expect(sent).toEqual(["read", "write"]);
  expect(
    await db.sql("select name, state, attempt from longhaul.steps where thread_id = $1 order by seq", [thread]),
  ).toEqual([
    { name: "read", state: "SUCCEEDED", attempt: 1 },
    { name: "write", state: "SUCCEEDED", attempt: 1 },
  ]);
}

/** A statement is sent this often before its sender gives up: once, and after each of five waits. */
const TRIES = 6;
const LOG = ["read", "write", "after"];

describe("PG-03: the server ends every connection", () => {
  it("PG-03: idle: the clients are replaced and the next run knows nothing of it", async () => {
    const ledger = db.openLedger();
    const first = paying(ledger);
    await first.graph.invoke({ log: [] }, thread("warm"));
    const { pool } = await databaseOf(ledger);
    expect(await terminate()).toBeGreaterThan(0);
    await expect.poll(() => (pool as pg.Pool).totalCount).toBe(0);
    const second = paying(ledger);
    expect(await second.graph.invoke({ log: [] }, thread("idle"))).toMatchObject({ log: LOG });
    await expectOnce("idle", second.sent);
  });

  it.each([
    ["between two statements", false],
    ["during a statement", true],
  ])("PG-03: in a transaction, %s: what it did is undone, and it is tried again", async (_when, during) => {
    const database = await databaseOf(db.openLedger());
    await db.sql("drop table if exists tries");
    await db.sql("create table tries (n integer)");
    let tries = 0;
    await database.transaction(async (client) => {
      tries++;
      await client.query(`insert into tries values (${tries})`);
      if (tries > 1) return;
      const sleeping = during ? client.query("select pg_sleep(30)") : undefined;
      sleeping?.catch(() => {});
      if (during) await expect.poll(sleepers).toBe(1);
      expect(await terminate()).toBeGreaterThan(0);
      await expect.poll(sessions).toBe(0);
      await (sleeping ?? client.query("select 1"));
    });
    expect(tries).toBe(2);
    expect(await db.sql("select n from tries")).toEqual([{ n: 2 }]);
  });

  it.each(["read", "write"] as const)(
    "PG-03: in the middle of a %s: its receipt is recorded, and nothing is sent again",
    async (verb) => {
      const world = paying(db.openLedger(), async (at) => {
        if (at === verb) expect(await terminate()).toBeGreaterThan(0);
      });
      expect(await world.graph.invoke({ log: [] }, thread(`mid-${verb}`))).toMatchObject({ log: LOG });
      await expectOnce(`mid-${verb}`, world.sent);
    },
  );

  it.each([
    "lh_acquire",
    "lh_run_put",
    "lh_record_read",
    "lh_begin_write",
    "lh_succeed",
    "lh_run_writes",
    "lh_release_run",
  ])(
    "PG-03: the answer to %s is lost, though it was committed: its sender looks, and does nothing twice",
    async (statement) => {
      const pool = new pg.Pool({ connectionString: db.url, max: 4 });
      pool.on("error", () => {});
      const lost: string[] = [];
      const losing = listeningPool(pool, async (name, send) => {
        const answer = await send();
        if (name !== statement || lost.length > 0) return answer;
        lost.push(name);
        throw Object.assign(new Error("terminating connection due to administrator command"), { code: "57P01" });
      });
      const { graph, sent } = paying(openLedger({ pool: losing }));
      expect(await graph.invoke({ log: [] }, thread(statement))).toMatchObject({ log: LOG });
      expect(lost).toEqual([statement]);
      await expectOnce(statement, sent);
      expect(await db.sql("select state from longhaul.threads where thread_id = $1", [statement])).toEqual([
        { state: "done" },
      ]);
      await pool.end();
    },
  );
});

describe("PG-03: the server is away for longer than anybody waits", () => {
  /** Refuses one statement as a server does that is down, `times` times. */
  async function withRefusals<T>(statement: string, times: number, work: (ledger: Ledger) => Promise<T>): Promise<T> {
    const pool = new pg.Pool({ connectionString: db.url, max: 4 });
    pool.on("error", () => {});
    let left = times;
    const refusing = listeningPool(pool, async (name, send) => {
      if (name !== statement || left-- <= 0) return send();
      throw Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });
    });
    try {
      return await work(openLedger({ pool: refusing }));
    } finally {
      await pool.end();
    }
  }

  it("PG-03: before the receipt of a write: it is in doubt and not sent again, though the connection was refused", async () => {
    const sent = await withRefusals("lh_succeed", TRIES, async (ledger) => {
      const world = paying(ledger);
      await world.graph.invoke({ log: [] }, thread("away")).catch(() => {});
      return world.sent;
    });
    // What was refused is the ledger's statement. The write itself was sent.
    expect(sent).toEqual(["read", "write"]);
    const again = paying(db.openLedger());
    await db.advance(31_000);
    expect(await again.graph.invoke(null, thread("away"))).toHaveProperty("__interrupt__");
    expect(again.sent).toEqual([]);
  });

  it("PG-03: before the intent: the run leaves and says so, nothing is sent, and the next run does it", async () => {
    await withRefusals("lh_begin_write", TRIES, async (ledger) => {
      const world = paying(ledger);
      const left = await world.graph.invoke({ log: [] }, thread("no intent")).catch(drainReason);
      expect(left).toMatchObject({
        kind: "unrecorded",
        message: expect.stringContaining("PostgreSQL cannot be reached"),
      });
      expect(world.sent).toEqual(["read"]);
    });
    const again = paying(db.openLedger());
    expect(await again.graph.invoke(null, thread("no intent"))).toMatchObject({ log: LOG });
    expect(again.sent).toEqual(["write"]);
  });
});

const sessions = async () => {
  const rows = await db.sql(
    "select 1 from pg_stat_activity where datname = current_database() and application_name = 'langgraph-longhaul'",
  );
  return rows.length;
};

const sleepers = async () => {
  const rows = await db.sql(
    "select 1 from pg_stat_activity where datname = current_database() and query like '%pg_sleep(30)%' and application_name = 'langgraph-longhaul'",
  );
  return rows.length;
};
