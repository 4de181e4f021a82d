// G6: an edit is not a fork of the world.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode, type Ledger, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({
  n: Annotation<number>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** a -> pay -> z; `pay` pays a constant amount, and may die after its receipt. */
function payingGraph(ledger: Ledger, options: { onFork?: "ask" | "run" } = {}) {
  const world = { paid: 0, die: false };
  const graph = durableGraph(
    new StateGraph(State)
      .addNode("a", () => ({ log: ["a"] }))
      .addNode(
        "pay",
        durableNode(State, async (_s, { step }) => {
          const receipt = await step.write("pay", { amount: 10 }, async () => `receipt ${++world.paid}`);
          if (world.die) throw new Error("dies after its receipt");
          return { log: [receipt] };
        }),
      )
      .addNode("z", () => ({ log: ["z"] }))
      .addEdge(START, "a")
      .addEdge("a", "pay")
      .addEdge("pay", "z")
      .addEdge("z", END),
    { ledger, ...options },
  );
  const question = async (id: string) => {
    const state = await graph.getState(thread(id));
    return state.tasks.flatMap((task) => task.interrupts)[0]?.value as { kind: string; idempotencyKey: string };
  };
  return { graph, world, question };
}

describe("G6: a write that was done before the thread was edited", () => {
  it("is asked about after an update at the head, and its result can be reused", async () => {
    const ledger = db.openLedger();
    const { graph, world, question } = payingGraph(ledger);
    world.die = true;
    await expect(graph.invoke({ n: 1 }, thread("edit"))).rejects.toThrow("dies after");
    world.die = false;
    await graph.updateState(thread("edit"), { log: ["note"] }, "a");
    await graph.invoke(null, thread("edit"));
    expect(world.paid).toBe(1);
    const { kind, idempotencyKey } = await question("edit");
    expect(kind).toBe("SIBLING_EFFECT");
    await expect(settle(ledger, { idempotencyKey, by: "ann", outcome: "did-not-happen" })).rejects.toThrow(/reuse/);
    expect(await settle(ledger, { idempotencyKey, by: "ann", outcome: "reuse" })).toMatchObject({ result: "settled" });
    expect((await graph.invoke(null, thread("edit"))).log).toEqual(["a", "note", "receipt 1", "z"]);
    expect(world.paid).toBe(1);
  });

  it("is asked about when the same input is sent again after a crash, and can be done again", async () => {
    const ledger = db.openLedger();
    const world = { paid: 0, die: true };
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (_s, { step }) => {
            const receipt = await step.write("pay", { amount: 10 }, async () => `receipt ${++world.paid}`);
            if (world.die) throw new Error("dies after its receipt");
            return { log: [receipt] };
          }),
        )
        .addEdge(START, "pay")
        .addEdge("pay", END),
      { ledger },
    );
    await expect(graph.invoke({ n: 1 }, thread("again"))).rejects.toThrow("dies after");
    world.die = false;
    await graph.invoke({ n: 1 }, thread("again"));
    expect(world.paid).toBe(1);
    const state = await graph.getState(thread("again"));
    const value = state.tasks[0]?.interrupts[0]?.value as { kind: string; idempotencyKey: string };
    expect(value.kind).toBe("SIBLING_EFFECT");
    await settle(ledger, { idempotencyKey: value.idempotencyKey, by: "ann", outcome: "run-again" });
    expect((await graph.invoke(null, thread("again"))).log).toEqual(["receipt 2"]);
  });

  it("is asked about on a fork with the same input, unless the graph says that forks run", async () => {
    for (const [id, options, paid] of [
      ["fork-ask", {}, 1],
      ["fork-run", { onFork: "run" as const }, 2],
    ] as const) {
      const { graph, world, question } = payingGraph(db.openLedger(), options);
      await graph.invoke({ n: 1 }, thread(id));
      let before: { configurable?: Record<string, unknown> } | undefined;
      for await (const state of graph.getStateHistory(thread(id))) if (state.next[0] === "a") before = state.config;
      await graph.invoke(null, before ?? {});
      expect({ id, paid: world.paid }).toEqual({ id, paid });
      if (paid === 1) expect(await question(id)).toMatchObject({ kind: "SIBLING_EFFECT" });
    }
  });

  it("is not asked about in a loop, nor for a second message: those are other effects", async () => {
    let paid = 0;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (s, { step }) => {
            await step.write("pay", { amount: 10 }, async () => ++paid);
            return { n: s.n - 1 };
          }),
        )
        .addEdge(START, "pay")
        .addConditionalEdges("pay", (s) => (s.n > 0 ? "pay" : END), ["pay", END]),
      { ledger: db.openLedger() },
    );
    await graph.invoke({ n: 3 }, thread("loop"));
    expect(paid).toBe(3);
    await graph.invoke({ n: 2 }, thread("loop"));
    expect(paid).toBe(5);
  });

  it("is asked about inside a subgraph too", async () => {
    const ledger = db.openLedger();
    const world = { paid: 0, die: true };
    const sub = new StateGraph(State)
      .addNode(
        "pay",
        durableNode(State, async (_s, { step }) => {
          const receipt = await step.write("pay", { amount: 10 }, async () => `receipt ${++world.paid}`);
          if (world.die) throw new Error("dies after its receipt");
          return { log: [receipt] };
        }),
      )
      .addEdge(START, "pay")
      .addEdge("pay", END)
      .compile();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("a", () => ({ log: ["a"] }))
        .addNode("sub", sub)
        .addEdge(START, "a")
        .addEdge("a", "sub")
        .addEdge("sub", END),
      { ledger },
    );
    await expect(graph.invoke({ n: 1 }, thread("sub"))).rejects.toThrow("dies after");
    world.die = false;
    await graph.updateState(thread("sub"), { log: ["note"] }, "a");
    await graph.invoke(null, thread("sub"));
    expect(world.paid).toBe(1);
  });
});
