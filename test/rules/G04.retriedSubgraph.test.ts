// G4: a node that enters a subgraph and is retried gives the steps below it the identities of before.
import { START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode, type Ledger } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { RETRY, State, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

/** A subgraph that pays and then fails as often as it is told to. */
function subgraph(failures: number) {
  const keys: string[] = [];
  let left = failures;
  const graph = new StateGraph(State)
    .addNode(
      "pay",
      durableNode(State, async (_state, { step }) => ({
        log: [
          await step.write("pay", {}, async ({ idempotencyKey }) => {
            keys.push(idempotencyKey);
            return "paid";
          }),
        ],
      })),
    )
    .addNode("fails", async () => {
      if (left-- > 0) throw new Error("not yet");
      return { log: ["ok"] };
    })
    .addEdge(START, "pay")
    .addEdge("pay", "fails")
    .compile();
  return { graph, keys };
}

describe("G4: a subgraph below a retryPolicy", () => {
  it("is entered again by a durableNode under its old namespace: its write happens once", async () => {
    const { graph: sub, keys } = subgraph(2);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "outer",
          durableNode(State, async () => ({ log: (await sub.invoke({ log: [] })).log })),
          { retryPolicy: RETRY },
        )
        .addEdge(START, "outer"),
      { ledger },
    );
    expect((await graph.invoke({ log: [] }, thread("retried"))).log).toEqual(["paid", "ok"]);
    expect(keys).toHaveLength(1);
    expect(await stepsOf(db, "retried")).toMatchObject([{ name: "pay", state: "SUCCEEDED", attempt: 1 }]);
  });

  it("keeps its calls apart when a retried durableNode enters it twice", async () => {
    const { graph: sub, keys } = subgraph(1);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "outer",
          durableNode(State, async () => ({
            log: [...(await sub.invoke({ log: [] })).log, ...(await sub.invoke({ log: [] })).log],
          })),
          { retryPolicy: RETRY },
        )
        .addEdge(START, "outer"),
      { ledger },
    );
    expect((await graph.invoke({ log: [] }, thread("twice"))).log).toEqual(["paid", "ok", "paid", "ok"]);
    expect(new Set(keys).size).toBe(2);
    expect(keys).toHaveLength(2);
  });

  it("that failed is gone on with by the next run without a second write", async () => {
    const { graph: sub, keys } = subgraph(1);
    const graph = durableGraph(new StateGraph(State).addNode("sub", sub).addEdge(START, "sub"), { ledger });
    await expect(graph.invoke({ log: [] }, thread("resumed"))).rejects.toThrow("not yet");
    expect((await graph.invoke(null, thread("resumed"))).log).toEqual(["paid", "ok"]);
    expect(keys).toHaveLength(1);
  });

  it("is not entered again by a plain node that is retried: a write in it is refused, with what to do", async () => {
    const { graph: sub, keys } = subgraph(1);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("outer", async () => ({ log: (await sub.invoke({ log: [] })).log }), { retryPolicy: RETRY })
        .addEdge(START, "outer"),
      { ledger },
    );
    await expect(graph.invoke({ log: [] }, thread("plain"))).rejects.toMatchObject({
      code: "STEP_USAGE",
      status: 400,
      message: expect.stringContaining("a durableNode"),
    });
    expect(keys).toHaveLength(1);
    expect((await graph.invoke(null, thread("plain"))).log).toEqual(["paid", "ok"]);
    expect(keys).toHaveLength(1);
  });

  const bare = () => new StateGraph(State).addNode("sub", subgraph(0).graph).addEdge(START, "sub");
  it.each<[string, () => unknown]>([
    ["by setNodeDefaults", () => durableGraph(bare().setNodeDefaults({ retryPolicy: RETRY }), { ledger })],
    [
      "on a node of its own",
      () =>
        durableGraph(
          new StateGraph(State).addNode("sub", subgraph(0).graph, { retryPolicy: RETRY }).addEdge(START, "sub"),
          { ledger },
        ),
    ],
  ])("is refused at construction when the retryPolicy is %s", (_where, make) => {
    expect(make).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringContaining("in a durableNode"),
      }),
    );
  });

  it("is refused at construction when the retryPolicy is below a subgraph", () => {
    const inner = new StateGraph(State).addNode("sub", subgraph(0).graph, { retryPolicy: RETRY }).addEdge(START, "sub");
    const outer = new StateGraph(State).addNode("middle", inner.compile()).addEdge(START, "middle");
    expect(() => durableGraph(outer, { ledger })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
});
