// Behind pgbouncer in transaction mode, where no connection keeps anything for the next statement.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ledger, openLedger } from "../../src/index.js";
import { type RunningWorker, startWorker, type WorkerEvent } from "../../src/worker/index.js";
import { oneNode, thread } from "../rules/harness.js";
import { createDatabase, type TestDatabase, testDatabase } from "../support/database.js";
import { findPgbouncer, startPgbouncer } from "../support/pgbouncer.js";
import { runScript } from "../support/script.js";

const pgbouncer = findPgbouncer();

describe.skipIf(pgbouncer === undefined)("PG-02: pgbouncer with pool_mode=transaction and a pool of 2", () => {
  let db: TestDatabase;
  let bouncer: Awaited<ReturnType<typeof startPgbouncer>>;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    db = await testDatabase();
    bouncer = await startPgbouncer(pgbouncer ?? "", db.url, 2);
  });
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    await bouncer?.stop();
  });

  function open(): Ledger {
    const ledger = openLedger({ url: bouncer.url });
    closing.push(() => ledger.close());
    return ledger;
  }

  it("PG-02: three processes that set an empty database up at once all succeed", async () => {
    const empty = new URL(await createDatabase({ empty: true }));
    const behind = new URL(bouncer.url);
    behind.pathname = empty.pathname;
    const ended = await Promise.all([1, 2, 3].map(() => runScript("test/cases/openLedger.child.ts", [behind.href])));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([1, 2, 3].map(() => [0, ""]));
  });

  it("PG-02: workers run what is due, hold leases and write checkpoints, and say that they look instead of listening", async () => {
    const ledger = open();
    const effects: string[] = [];
    const graph = oneNode(ledger, async (step) => {
      const read = await step.read("page", {}, async () => "text");
      return step.write("pay", { read }, async ({ idempotencyKey }) => {
        effects.push(idempotencyKey);
        return "paid";
      });
    });
    const threads = Array.from({ length: 12 }, (_, i) => `behind-${i}`);
    for (const threadId of threads) await graph.updateState(thread(threadId), { log: [] }, "__start__");
    const events: WorkerEvent[] = [];
    const workers: RunningWorker[] = [1, 2].map(() =>
      startWorker({ ledger, graphs: graph, onEvent: (event) => events.push(event) }),
    );
    closing.push(() => Promise.all(workers.map((worker) => worker.stop())));
    await expect.poll(() => events.map(({ type }) => type), { timeout: 15_000 }).toEqual(["polling", "polling"]);
    await db.sql(
      "insert into longhaul.wakes (thread_id, due_at, reason) select 'behind-' || i, longhaul.ledger_now(), 'test' from generate_series(0, 11) i",
    );
    const done = () => events.filter(({ type }) => type === "done").length;
    await expect.poll(done, { timeout: 30_000 }).toBe(threads.length);
    expect(events.filter(({ type }) => type === "failed")).toEqual([]);
    expect([effects.length, new Set(effects).size]).toEqual([12, 12]);
    // Nobody is left listening on a connection that others use.
    const pool = new pg.Pool({ connectionString: bouncer.url, max: 4 });
    const ask = () => pool.query("select pg_listening_channels() as channel, pg_sleep(0.1)");
    const channels = await Promise.all([1, 2, 3, 4].map(ask));
    await pool.end();
    expect(channels.flatMap(({ rows }) => rows)).toEqual([]);
  });
});
