// Times that no timer can carry: they are kept by the database, and nothing fires before them.
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason } from "../../src/index.js";
import { startLoop } from "../../src/sweep/loop.js";
import { startWorker, type WorkerEvent } from "../../src/worker/index.js";
import { oneNode, reset, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const DAY_MS = 24 * 3_600_000;

describe("TIM-01: waits of more than 2^31 ms", () => {
  it("TIM-01: a lookup that is due in 25 days is asked then, and not before", async () => {
    const ledger = db.openLedger();
    let asked = 0;
    const graph = oneNode(ledger, (step) =>
      step.write(
        "pay",
        {},
        async (): Promise<string> => {
          throw reset();
        },
        {
          lookup: async () =>
            ++asked === 1 ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: "po_1" },
          settleMs: 25 * DAY_MS,
        },
      ),
    );
    const left = await graph.invoke({ log: [] }, thread("far")).catch(drainReason);
    expect(left).toMatchObject({ kind: "due" });
    const events: WorkerEvent[] = [];
    const onEvent = (event: WorkerEvent) => events.push(event);
    const worker = startWorker({ ledger, graphs: graph, pollMs: 50, onEvent, onError: () => {} });
    const woken = () => events.filter(({ type }) => type === "woke").length;
    const turn = async () => {
      // Another thread that is due shows that the worker has looked since.
      await db.sql(
        "insert into longhaul.wakes (thread_id, due_at, reason) values ('marker', longhaul.ledger_now(), 'x')",
      );
      await expect.poll(() => db.sql("select 1 from longhaul.wakes where thread_id = 'marker'")).toEqual([]);
    };
    await turn();
    await db.advance(24.9 * DAY_MS);
    await turn();
    expect([asked, events.filter((event) => "threadId" in event && event.threadId === "far")]).toEqual([1, []]);
    await db.advance(0.2 * DAY_MS);
    await expect.poll(() => events, { timeout: 10_000 }).toContainEqual({ type: "done", threadId: "far", as: "done" });
    expect([asked, woken()]).toEqual([2, 3]);
    await worker.stop();
  });

  it.each([2 ** 31, 25 * DAY_MS, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY, Number.NaN])(
    "TIM-01: a wait of %d ms is a wait of many polls: it neither fires at once nor goes unheeded",
    async (dueInMs) => {
      const turns: number[] = [];
      const turn = async () => {
        turns.push(performance.now());
        return dueInMs;
      };
      const loop = startLoop({ turn, pollMs: 200, onError: () => {} });
      await expect.poll(() => turns.length).toBeGreaterThan(1);
      await loop.stop();
      const [first = 0, second = 0] = turns;
      expect(second - first).toBeGreaterThan(150);
    },
  );

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 2 ** 31])("TIM-01: refuses a poll of %d ms", (pollMs) => {
    const ledger = db.openLedger();
    const graph = oneNode(ledger, async () => "x");
    expect(() => startWorker({ ledger, graphs: graph, pollMs })).toThrow(/Expected `pollMs`/);
  });
});
