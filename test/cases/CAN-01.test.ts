// A cancel reaches a graph that its host passes no signal to, and a run that another process has.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cancelRun, drainReason, redrive } from "../../src/index.js";
import { later, oneNode, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const stateOf = async (threadId: string) =>
  (await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [threadId]))[0]?.state;
const storedIn = async (threadId: string) =>
  (
    await db.sql<{ n: number }>(
      `select ((select count(*) from longhaul.checkpoints where thread_id = $1) + (select count(*) from longhaul.checkpoint_writes where thread_id = $1))::int as n`,
      [threadId],
    )
  )[0]?.n;

describe("CAN-01: a cancel", () => {
  it("CAN-01: stops a node that loops, before its next step, where no signal is passed", async () => {
    // Another ledger on the same database: nothing tells the run but the database.
    const [ledger, operators] = [db.openLedger(), db.openLedger()];
    let turns = 0;
    let stored: number | undefined;
    const graph = oneNode(ledger, async (step) => {
      for (; turns < 8; turns++) {
        await step.read("look", turns, async () => turns);
        if (turns !== 2) continue;
        await cancelRun(operators, { threadId: "loop", by: "ann", reason: "wrong customer" });
        stored = await storedIn("loop");
      }
    });
    const error = await graph.invoke({ log: [] }, thread("loop")).catch((caught: unknown) => caught);
    expect(drainReason(error)).toMatchObject({ kind: "cancelled", message: expect.stringContaining("by ann") });
    expect([turns, (await stepsOf(db, "loop")).length]).toEqual([3, 3]);
    expect([await stateOf("loop"), await storedIn("loop")]).toEqual(["cancelled", stored]);
  });

  it("CAN-01: stops a run of another process: its next write is refused, and nothing is stored any more", async () => {
    const ledger = db.openLedger();
    const task = { url: db.url, worldUrl: world.url, thread: "away", shape: "three writes" } as const;
    let answered: Awaited<ReturnType<typeof cancelRun>> | undefined;
    world.beforeAnswer = async () => {
      world.beforeAnswer = () => {};
      answered = await cancelRun(ledger, { threadId: "away", by: "ann" });
    };
    const ended = await startWorker({ ...task, input: "new" }).result;
    expect(answered).toMatchObject({ result: "cancel requested", applied: true, inDoubt: [expect.any(String)] });
    expect(ended.drain?.kind).toBe("cancelled");
    expect(world.count("pay", "away")).toBe(1);
    expect(await stepsOf(db, "away")).toMatchObject([{ state: "SUCCEEDED" }]);
    expect(await stateOf("away")).toBe("cancelled");

    // It does nothing more until somebody lets it go on; then the write that stands is not made again.
    expect(await work(task)).toMatchObject({ error: expect.stringContaining("was cancelled by ann") });
    expect(world.count("pay", "away")).toBe(1);
    await redrive(ledger, { threadId: "away", by: "ben" });
    expect((await work(task)).log).toHaveLength(3);
    expect(world.count("pay", "away")).toBe(3);
    const events = await db.sql(
      "select kind, by_whom from longhaul.thread_events where thread_id = 'away' order by id",
    );
    expect(events).toEqual([
      { kind: "cancel requested", by_whom: "ann" },
      { kind: "cancelled", by_whom: "ann" },
      { kind: "cancel lifted", by_whom: "ben" },
    ]);
  });

  it("CAN-01: is learned by a run that makes no step at its next lease renewal, and fires its signal", async () => {
    const [ledger, operators] = [db.openLedger({ leaseMs: 900 }), db.openLedger()];
    const graph = oneNode(ledger, async (_step, runtime) => {
      await cancelRun(operators, { threadId: "quiet", by: "ann" });
      await new Promise((_, reject) => runtime.signal?.addEventListener("abort", () => reject(new Error("stopped"))));
    });
    const error = await graph.invoke({ log: [] }, thread("quiet")).catch((caught: unknown) => caught);
    expect(drainReason(error)?.kind).toBe("cancelled");
    expect(await stateOf("quiet")).toBe("cancelled");
  });

  it("CAN-01: stores no checkpoint of a plain node that had no step to be refused", async () => {
    const [ledger, operators] = [db.openLedger(), db.openLedger()];
    let stored: number | undefined;
    const graph = oneNode(ledger, async () => {
      await cancelRun(operators, { threadId: "plain", by: "ann" });
      stored = await storedIn("plain");
      await later(1);
    });
    const error = await graph.invoke({ log: [] }, thread("plain")).catch((caught: unknown) => caught);
    expect(drainReason(error)?.kind).toBe("cancelled");
    expect([await stateOf("plain"), await storedIn("plain")]).toEqual(["cancelled", stored]);
  });
});
