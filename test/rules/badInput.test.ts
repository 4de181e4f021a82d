// What a run is asked to do and must not: refused with a sentence that says what to do instead, or neutralised, before
// any effect. (A retryPolicy on a bare subgraph: G04. `durability: "exit"` and `checkpointer: false`: test/langgraph.)
import { Command, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason, durableGraph, durableNode, type Ledger } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { oneNode, State, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

/** A graph of one write that counts, and whose business key means the same on every run of the thread. */
function counting() {
  const sent: string[] = [];
  const graph = oneNode(ledger, (step) =>
    step.write("pay", {}, async () => String(sent.push("pay")), { key: "order-1" }),
  );
  return { sent, graph };
}

describe("a durability that a crash would leave nothing of", () => {
  const exit = { code: "INVALID_OPTION", message: expect.stringContaining("Leave it out") };
  it.each<[string, (graph: ReturnType<typeof counting>["graph"], id: string) => Promise<unknown>]>([
    ["invoke", (graph, id) => graph.invoke({ log: [] }, { ...thread(id), durability: "exit" })],
    ["withConfig", (graph, id) => graph.withConfig({ durability: "exit" } as object).invoke({ log: [] }, thread(id))],
    ["checkpointDuring: false", (graph, id) => graph.invoke({ log: [] }, { ...thread(id), checkpointDuring: false })],
    [
      "stream",
      async (graph, id) => {
        for await (const _ of await graph.stream({ log: [] }, { ...thread(id), durability: "exit" }));
      },
    ],
    [
      "streamEvents",
      async (graph, id) => {
        for await (const _ of graph.streamEvents({ log: [] }, { ...thread(id), durability: "exit", version: "v2" }));
      },
    ],
    [
      "a caller over withConfig",
      (graph, id) =>
        graph.withConfig({ durability: "sync" } as object).invoke({ log: [] }, { ...thread(id), durability: "exit" }),
    ],
  ])("is refused through %s, before the thread is touched", async (how, run) => {
    const { graph, sent } = counting();
    await expect(run(graph, `exit ${how}`)).rejects.toMatchObject(exit);
    expect(sent).toEqual([]);
    expect(await db.sql("select 1 from longhaul.threads where thread_id = $1", [`exit ${how}`])).toEqual([]);
  });

  it("async over our sync is allowed: the write waits for its checkpoints all the same", async () => {
    let stored: unknown[] = [];
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("a", async () => ({ log: ["a"] }))
        .addNode(
          "pay",
          durableNode(State, async (_state, { step, executionInfo }) => ({
            log: [
              await step.write("pay", {}, async () => {
                stored = await db.sql("select 1 from longhaul.checkpoints where checkpoint_id = $1", [
                  executionInfo?.checkpointId,
                ]);
                return "paid";
              }),
            ],
          })),
        )
        .addEdge(START, "a")
        .addEdge("a", "pay"),
      { ledger },
    ).withConfig({ durability: "sync" } as object);
    const { log } = (await graph.invoke({ log: [] }, { ...thread("async"), durability: "async" })) as { log: string[] };
    expect(log).toEqual(["a", "paid"]);
    expect(stored).toHaveLength(1);
  });
});

describe("a subgraph that keeps its own history", () => {
  it("called twice in parallel is refused with what to do, and each write happens at most once", async () => {
    const sent: string[] = [];
    const sub = new StateGraph(State)
      .addNode(
        "pay",
        durableNode(State, async (_state, { step }) => ({
          log: [
            await step.write("pay", {}, async ({ idempotencyKey }) => (sent.push(idempotencyKey) > 0 ? "paid" : "")),
          ],
        })),
      )
      .addEdge(START, "pay")
      .compile({ checkpointer: true });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("fan", async () => ({ log: [] }))
        .addNode("branch", async () => ({ log: (await sub.invoke({ log: [] })).log }))
        .addEdge(START, "fan")
        .addConditionalEdges("fan", () => [new Send("branch", {}), new Send("branch", {})], ["branch"]),
      { ledger },
    );
    const left = await graph.invoke({ log: [] }, thread("history")).catch(drainReason);
    expect(left).toMatchObject({ kind: "lost", message: expect.stringContaining("compile it without that option") });
    expect(new Set(sent).size).toBe(sent.length);
  });
});

describe("a resume value", () => {
  it("at a checkpoint that is not the head is refused with what to do, and sends nothing", async () => {
    const sent: string[] = [];
    const graph = oneNode(ledger, async (step) => {
      const answer = interrupt("pay?");
      return step.write("pay", {}, async () => `${answer} ${sent.push("pay")}`);
    });
    await graph.invoke({ log: [] }, thread("past"));
    const asked = (await graph.getState(thread("past"))).config;
    await graph.invoke(new Command({ resume: "yes" }), thread("past"));
    await expect(graph.invoke(new Command({ resume: "no" }), asked)).rejects.toMatchObject({
      code: "STALE_WRITER",
      status: 409,
      message: expect.stringContaining("Leave `checkpoint_id` out"),
    });
    expect(sent).toEqual(["pay"]);
    expect((await graph.getState(thread("past"))).values.log).toEqual(["yes 1"]);
  });
});

describe("a client's configurable and metadata", () => {
  it.each<[string, object]>([
    [
      "LangGraph's own entries",
      { configurable: { __pregel_scratchpad: {}, __pregel_checkpointer: {}, __pregel_read: {} } },
    ],
    ["an entry of ours", { configurable: { __longhaul: { run: 1 }, longhaul: { ledger: "mine" } } }],
    ["a namespace", { configurable: { checkpoint_ns: "" } }],
    ["another node and task", { metadata: { langgraph_node: "other", langgraph_checkpoint_ns: "other:task" } }],
  ])(
    "with %s changes nothing",
    async (what, forged) => {
      const { graph, sent } = counting();
      const { configurable = {}, ...rest } = forged as { configurable?: object };
      const config = { ...rest, configurable: { ...configurable, thread_id: what } };
      expect((await graph.invoke({ log: [] }, config)).log).toEqual(["1"]);
      const rows = await db.sql("select thread_id, node, state from longhaul.steps where thread_id = $1", [what]);
      expect(rows).toEqual([{ thread_id: what, node: "node", state: "SUCCEEDED" }]);
      expect((await graph.getState(thread(what))).values.log).toEqual(["1"]);
      expect(sent).toHaveLength(1);
    },
    40_000,
  );

  it("with the checkpoints of another place changes nothing", async () => {
    const { graph, sent } = counting();
    const configurable = { thread_id: "other place", checkpoint_map: { "": "forged", other: "forged" } };
    expect((await graph.invoke({ log: [] }, { configurable })).log).toEqual(["1"]);
    expect(sent).toHaveLength(1);
  }, 40_000);

  it("with another thread's id in its metadata does not get that thread's results", async () => {
    const { graph, sent } = counting();
    await graph.invoke({ log: [] }, thread("victim"));
    const config = { ...thread("forger"), metadata: { thread_id: "victim" } };
    expect((await graph.invoke({ log: [] }, config)).log).toEqual(["2"]);
    expect(sent).toHaveLength(2);
    const keys = [...(await stepsOf(db, "victim")), ...(await stepsOf(db, "forger"))].map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
  }, 40_000);
});
