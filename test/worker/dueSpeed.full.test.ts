// P8: due work stays quick and punctual however much the ledger holds.
import { beforeAll, describe, expect, it } from "vitest";
import { claimDue, nextDueMs, strangers, wakeDeadRuns } from "../../src/postgres/due.js";
import { overdueThreads, readSweeping } from "../../src/postgres/health.js";
import { startWorker, sweep, type WorkerEvent } from "../../src/worker/index.js";
import { oneNode, thread } from "../rules/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";

const STEPS = 1_000_000;
const THREADS = 20_000;
const PENDING = 10_000;
const QUICK_MS = 20;

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
  await db.openLedger();
  await databaseOf(db.openLedger());
  await db.sql(
    `insert into longhaul.threads (thread_id, epoch, state, graph, created_at, updated_at)
     select 'old-' || i, 1, 'done', 'LangGraph', now(), now() from generate_series(1, ${THREADS}) i`,
  );
  await db.sql(
    `insert into longhaul.steps (key, thread_id, generation, kind, effect, name, call_site, node, superstep, checkpoint_ns, checkpoint_id,
       input_hash, settle_ms, attempt, epoch, started_at, claimed_at, state, output, ended_at)
     select decode(md5(i::text), 'hex'), 'old-' || (i % ${THREADS}), 0, 'node', 'read', 'page', 'page', 'work', 1, '', '',
       decode(md5(i::text), 'hex'), 0, 1, 1, now(), now(), 'SUCCEEDED', '\\x00', now() from generate_series(1, ${STEPS}) i`,
  );
  await db.sql(
    `insert into longhaul.wakes (thread_id, due_at, reason)
     select 'old-' || i, longhaul.ledger_now() + make_interval(hours => 1 + i % 500), 'later' from generate_series(1, ${PENDING}) i`,
  );
  await db.sql("analyze longhaul.steps, longhaul.threads, longhaul.wakes");
}, 600_000);

async function medianMs(work: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < 21; i++) {
    const from = performance.now();
    await work();
    took.push(performance.now() - from);
  }
  return took.sort((a, b) => a - b)[10] ?? Number.POSITIVE_INFINITY;
}

describe(`a ledger of ${STEPS} steps and ${PENDING} pending wakes`, () => {
  it("answers every question of due work within 20 ms, whether nothing is due or everything is", async () => {
    const database = await databaseOf(db.openLedger());
    const request = { limit: 4, by: "bench", claimMs: 60_000, graphs: ["LangGraph"], except: [] };
    const measure = async () => ({
      claim: await medianMs(() => claimDue(database, request)),
      next: await medianMs(() => nextDueMs(database)),
      deadRuns: await medianMs(() => wakeDeadRuns(database)),
      strangers: await medianMs(() => strangers(database, ["LangGraph"])),
      sweeping: await medianMs(() => readSweeping(database)),
    });
    const quiet = await measure();
    await db.advance(600 * 3_600_000);
    const late = await measure();
    const overdue = await medianMs(() => overdueThreads(database));
    console.log(JSON.stringify({ quiet, late, overdue }));
    for (const ms of [...Object.values(quiet), ...Object.values(late)]) expect(ms).toBeLessThan(QUICK_MS);
    await db.sql("update longhaul.wakes set due_at = due_at + interval '600 hours', claimed_until = '-infinity'");
  });

  it("wakes threads within a second of their time", async () => {
    const ledger = db.openLedger();
    const graph = oneNode(ledger, async () => "done");
    const threads = Array.from({ length: 20 }, (_, i) => `punctual-${i}`);
    for (const threadId of threads) await graph.updateState(thread(threadId), { log: [] }, "__start__");
    const events: WorkerEvent[] = [];
    const worker = startWorker({ ledger, graphs: graph, onEvent: (event) => events.push(event) });
    await sweep(ledger);
    await db.sql(
      "insert into longhaul.wakes (thread_id, due_at, reason) select 'punctual-' || i, longhaul.ledger_now() + make_interval(secs => 0.5 + i * 0.17), 'test' from generate_series(0, 19) i",
    );
    const late = () => events.flatMap((event) => (event.type === "woke" ? [event.lateMs] : []));
    await expect.poll(() => late().length, { timeout: 20_000 }).toBe(threads.length);
    console.log(JSON.stringify({ lateMs: late() }));
    expect(Math.min(...late())).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late())).toBeLessThan(1_000);
    await worker.stop();
  });
});
