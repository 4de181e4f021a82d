// A cancel while a request is on its way: the ledger says what became of it, and never just "cancelled".
import { END, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cancelRun, compensate, drainReason, durableGraph, durableNode, operation, settle } from "../../src/index.js";
import { listThreads } from "../../src/postgres/runs.js";
import { historyOf as changesOf } from "../../src/postgres/stepRows.js";
import { deferred, State, stepsOf, thread } from "../rules/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

async function shown(threadId: string) {
  const [found] = await listThreads(await databaseOf(db.openLedger()), { threadId, limit: 1 });
  return found?.state;
}

describe("CAN-02: a cancel while a POST is in flight", () => {
  it("CAN-02: whose tool ignores the signal is requested, then committed late with its receipt, and can be undone", async () => {
    const ledger = db.openLedger();
    const sent = deferred();
    const answer = deferred();
    const undone: string[] = [];
    let aborted = false;
    const charge = operation<object, { id: string }>({
      name: "charge",
      version: "1.0.0",
      effect: "write",
      run: async (_input, { signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        sent.resolve();
        await answer.promise;
        return { id: "ch_1" };
      },
      compensate: async ({ receipt }) => {
        undone.push(receipt.id);
      },
    });
    const node = durableNode(State, async (_state, { step }) => ({ log: [(await step.run(charge, {})).id] }));
    const builder = new StateGraph(State).addNode("node", node).addEdge(START, "node").addEdge("node", END);
    const graph = durableGraph(builder, { ledger, operations: [charge] });
    const running = graph.invoke({ log: [] }, thread("ignores")).catch((caught: unknown) => caught);
    await sent.promise;
    const asked = await cancelRun(ledger, { threadId: "ignores", by: "ann" });
    expect(asked).toMatchObject({ result: "cancel requested", inDoubt: [expect.any(String)] });
    expect([aborted, await shown("ignores")]).toEqual([true, "cancel requested"]);
    answer.resolve();
    expect(drainReason(await running)?.kind).toBe("cancelled");
    const [step] = await stepsOf(db, "ignores");
    expect([step?.state, await shown("ignores")]).toEqual(["SUCCEEDED", "cancelled"]);
    const changes = await changesOf(await databaseOf(ledger), step?.key ?? "");
    expect(changes.map(({ to, reason }) => [to, reason])).toEqual([
      ["RUNNING", undefined],
      ["SUCCEEDED", "committed late: ann had asked to cancel"],
    ]);

    expect(await cancelRun(ledger, { threadId: "ignores", by: "ben" })).toMatchObject({
      result: "cancelled",
      applied: false,
      cancel: { by: "ann" },
      committed: [step?.key],
    });
    expect(await compensate(ledger, graph, { threadId: "ignores" })).toMatchObject({ complete: true });
    expect([undone, await shown("ignores")]).toEqual([["ch_1"], "cancelled"]);
  });

  it("CAN-02: whose tool honours the signal is in doubt, and asked about as ever", async () => {
    const ledger = db.openLedger();
    const task = { url: db.url, worldUrl: world.url, thread: "honours", shape: "guarded", leaseMs: 3000 } as const;
    const gate = deferred();
    world.beforeAnswer = async () => {
      await cancelRun(ledger, { threadId: "honours", by: "ann" });
      await gate.promise;
    };
    const ended = await startWorker({ ...task, input: "new" }).result;
    gate.resolve();
    expect(ended.drain?.kind).toBe("cancelled");
    const [step] = await stepsOf(db, "honours");
    expect(step).toMatchObject({ state: "NEEDS_RECONCILIATION", doubt: true });
    expect(world.count("node-undo", "honours")).toBe(0);
    const found = { idempotencyKey: step?.key ?? "", by: "ann", outcome: "happened", receipt: { id: "po_1" } } as const;
    expect(await settle(ledger, found)).toMatchObject({ result: "settled" });
    expect((await stepsOf(db, "honours"))[0]?.state).toBe("SUCCEEDED");
    expect(await shown("honours")).toBe("cancelled");
  });
});
