// INT-05: replay or fork from an older checkpoint reuses the old answer: the gate is silently passed.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, expect, it } from "vitest";
import { approvalsOf, decide, durable, durableGraph, fork, type Ledger, requestApproval } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({ amount: Annotation<number>, receipt: Annotation<string> });
const thread = (thread_id: string) => ({ configurable: { thread_id } });

function paying(ledger: Ledger) {
  const sent: { amount: number; key: string }[] = [];
  const builder = new StateGraph(State)
    .addNode("before", () => ({}))
    .addNode("pay", async ({ amount }, runtime) => {
      const { allowed } = await requestApproval(runtime, { action: "pay", args: { amount } });
      if (!allowed) return { receipt: "refused" };
      const receipt = await durable(runtime).step.write("pay", { amount }, async ({ idempotencyKey }) => {
        sent.push({ amount, key: idempotencyKey });
        return `paid ${amount}`;
      });
      return { receipt };
    })
    .addEdge(START, "before")
    .addEdge("before", "pay")
    .addEdge("pay", END);
  return { graph: durableGraph(builder, { ledger }), sent };
}

const WAYS = {
  "updateState at the older checkpoint": async (
    graph: ReturnType<typeof paying>["graph"],
    _: Ledger,
    point: object,
  ) => {
    await graph.updateState(point, { amount: 1000 }, "before");
  },
  "fork, then an edit": async (graph: ReturnType<typeof paying>["graph"], ledger: Ledger, point: object) => {
    const { thread_id, checkpoint_id } = (point as { configurable: Record<string, string> }).configurable;
    await fork(ledger, graph, { threadId: String(thread_id), checkpointId: String(checkpoint_id), by: "ann" });
    await graph.updateState(thread(String(thread_id)), { amount: 1000 }, "before");
  },
};

it.each(Object.entries(WAYS))(
  "INT-05: by %s, it is asked again for 1000, under a new key, and 10 is not paid twice",
  async (name, goBack) => {
    const ledger = db.openLedger();
    const { graph, sent } = paying(ledger);
    const approve = async () => {
      const pending = await approvalsOf(ledger, { threadId: name, status: "pending" });
      for (const { id } of pending)
        await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
      return pending.map(({ args }) => args);
    };
    await graph.invoke({ amount: 10 }, thread(name));
    expect(await approve()).toEqual([{ amount: 10 }]);
    expect((await graph.invoke(null, thread(name))).receipt).toBe("paid 10");
    let point: object | undefined;
    for await (const state of graph.getStateHistory(thread(name))) if (state.next[0] === "pay") point = state.config;
    await goBack(graph, ledger, point ?? {});
    expect((await graph.invoke(null, thread(name))).receipt).not.toBe("paid 1000");
    expect(sent.length).toBe(1);
    expect(await approve()).toEqual([{ amount: 1000 }]);
    expect((await graph.invoke(null, thread(name))).receipt).toBe("paid 1000");
    expect(sent.map(({ amount }) => amount)).toEqual([10, 1000]);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(2);
  },
);
