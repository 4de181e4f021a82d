// G15: what needs a wake writes it in the same transaction; a wake is cleared when a run starts, never when it ends,
// and a run that meets a busy thread leaves it.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drainReason, openLedger, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";
import { deferred, oneNode, reset, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  db = await testDatabase();
  pool = new pg.Pool({ connectionString: db.url });
});
afterAll(() => pool.end());

const wakes = (threadId: string) => db.sql("select reason from longhaul.wakes where thread_id = $1", [threadId]);
/** Whether a thread's wake and its step were last written by one transaction. */
const together = async (threadId: string) => {
  const [row] = await db.sql<{ together: boolean }>(
    "select s.xmin = w.xmin as together from longhaul.steps s join longhaul.wakes w using (thread_id) where thread_id = $1",
    [threadId],
  );
  return row?.together;
};

const unknown = async (): Promise<string> => {
  throw reset();
};

describe("G15: wakes", () => {
  it("a person's word and its wake are one transaction, and the next run clears it at its start", async () => {
    const ledger = db.openLedger();
    const seen: unknown[] = [];
    const graph = oneNode(ledger, async (step) => {
      seen.push(await wakes("word"));
      return step.write("pay", {}, unknown);
    });
    await graph.invoke({ log: [] }, thread("word"));
    expect(await wakes("word")).toEqual([]);
    const idempotencyKey = (await stepsOf(db, "word"))[0]?.key ?? "";
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "po_1" });
    expect(await wakes("word")).toHaveLength(1);
    expect(await together("word")).toBe(true);
    expect((await graph.invoke(null, thread("word"))).log).toEqual(["po_1"]);
    expect(seen).toEqual([[], []]);
    expect(await wakes("word")).toEqual([]);
  });

  it.each([
    ["a retry that is due", "lh_end_attempt", "retry"],
    ["a lookup's not yet", "lh_settle", "it did not happen yet"],
  ])("%s is written with its wake", async (what, statement, reason) => {
    const written: unknown[] = [];
    const listening = listeningPool(pool, async (name, send) => {
      const answer = await send();
      if (name === statement && written.length === 0) written.push(await wakes(what), await together(what));
      return answer;
    });
    const later = Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "60" } });
    const graph = oneNode(openLedger({ pool: listening }), (step) =>
      step.write(
        "pay",
        {},
        async (): Promise<string> => {
          throw statement === "lh_settle" ? reset() : later;
        },
        { lookup: async () => ({ outcome: "did-not-happen" }), settleMs: 60_000 },
      ),
    );
    expect(await graph.invoke({ log: [] }, thread(what)).catch(drainReason)).toMatchObject({ kind: "due" });
    expect(written).toEqual([[{ reason }], true]);
  });

  it("a wake that is written during a run is still there after it", async () => {
    const ledger = db.openLedger();
    const reached = deferred();
    const gate = deferred();
    const graph = oneNode(ledger, async (step) => {
      const paid = await step.write("pay", {}, unknown, { onUnknown: "throw" }).catch(() => "unknown");
      reached.resolve();
      await gate.promise;
      return paid;
    });
    const running = graph.invoke({ log: [] }, thread("during"));
    await reached.promise;
    const idempotencyKey = (await stepsOf(db, "during"))[0]?.key ?? "";
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "po_1" });
    gate.resolve();
    await running;
    expect(await wakes("during")).toHaveLength(1);
  });

  it("a run that meets a busy thread leaves its wake", async () => {
    const reached = deferred();
    const gate = deferred();
    const graph = oneNode(db.openLedger(), async () => {
      reached.resolve();
      return gate.promise;
    });
    const running = graph.invoke({ log: [] }, thread("busy"));
    await reached.promise;
    await db.sql("insert into longhaul.wakes values ('busy', now(), 'decided meanwhile')");
    expect(await graph.invoke(null, thread("busy")).catch(drainReason)).toMatchObject({ kind: "busy" });
    expect(await wakes("busy")).toEqual([{ reason: "decided meanwhile" }]);
    gate.resolve();
    await running;
    expect(await wakes("busy")).toEqual([{ reason: "decided meanwhile" }]);
  });
});
