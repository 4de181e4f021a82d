import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { paymentGraph } from "../crash/paymentGraph.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorld, type World } from "../support/world.js";

const THREADS = 50;

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("ORP-04: fifty threads at once on one compiled graph", () => {
  it("ORP-04: every row, key, effect and result is its own thread's", async () => {
    const graph = paymentGraph(db.openLedger(), world.url, "lookup").withConfig({
      tags: ["shared"],
      metadata: { tenant: "shared" },
    });
    const threads = Array.from({ length: THREADS }, (_, i) => `thread-${i}`);
    // An answer comes late and in another order than its request, so that the threads overlap.
    world.beforeAnswer = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
    const results = await Promise.all(
      threads.map((thread) => graph.invoke({ thread }, { configurable: { thread_id: thread } })),
    );

    for (const [i, thread] of threads.entries()) {
      const payments = world.paymentsOf(thread);
      expect(payments).toHaveLength(1);
      expect(results[i]).toEqual({ thread, log: ["page 1", "model 1", payments[0]?.id, "after"] });
    }
    const rows = await db.sql<{ thread_id: string; name: string; key: string; input: string | null; output: string }>(
      `select thread_id, name, encode(key, 'hex') as key, convert_from(input, 'utf8') as input,
         convert_from(output, 'utf8') as output from longhaul.steps`,
    );
    expect(rows).toHaveLength(3 * THREADS);
    for (const { thread_id, name, key, input, output } of rows) {
      if (name === "page") expect(input).toBe(JSON.stringify({ thread: thread_id }));
      if (name === "pay") expect(world.paymentsOf(thread_id)).toEqual([{ ...JSON.parse(output), key }]);
    }
    const perThread = await db.sql(
      "select thread_id from longhaul.steps group by thread_id having count(*) <> 3 or count(distinct name) <> 3",
    );
    expect(perThread).toEqual([]);
    // Checkpoints carry their thread in their state.
    const crossed = await db.sql(
      `select b.thread_id from longhaul.checkpoint_blobs b
       where b.channel = 'thread' and b.type = 'json' and convert_from(b.blob, 'utf8')::jsonb <> to_jsonb(b.thread_id)`,
    );
    expect(crossed).toEqual([]);
    const states = await db.sql("select state, count(*)::int as n from longhaul.threads group by state");
    expect(states).toEqual([{ state: "done", n: THREADS }]);
  });
});
