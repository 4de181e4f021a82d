// Nodes without durableNode, in a durable graph: durable() and durable tools in them leave as safely.
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durable, durableGraph, durableNode } from "../../src/index.js";
import { later, reset, State, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

type Work = (state: typeof State.State, runtime: object) => Promise<typeof State.Update>;
const graphOf = (work: Work) =>
  new StateGraph(State)
    .addNode("work", work)
    .addNode("after", async () => ({ log: ["after"] }))
    .addEdge(START, "work")
    .addEdge("work", "after")
    .addEdge("after", END);

/** Catches the pause of a write in doubt, and goes on as if it were an error. */
const swallowing: Work = async (_state, runtime) => {
  const pay = async (): Promise<string> => {
    throw reset();
  };
  return {
    log: [
      await durable(runtime)
        .step.write("pay", {}, pay)
        .catch(() => "swallowed"),
    ],
  };
};

describe("a pause that a plain node catches", () => {
  it.each<[string, () => ReturnType<typeof graphOf>]>([
    ["of the graph", () => graphOf(swallowing)],
    [
      "of a subgraph that is a node",
      () =>
        new StateGraph(State)
          .addNode("outer", graphOf(swallowing).compile())
          .addEdge(START, "outer")
          .addEdge("outer", END) as never,
    ],
    [
      "of a graph that a node invokes",
      () => {
        const inner = graphOf(swallowing).compile();
        return graphOf(async (state) => ({ log: (await inner.invoke(state)).log }));
      },
    ],
    [
      "of a graph that a durable node invokes",
      () => {
        const inner = graphOf(swallowing).compile();
        return graphOf(durableNode(State, async (state) => ({ log: (await inner.invoke(state)).log })));
      },
    ],
  ])("%s does not get past it", async (what, build) => {
    const graph = durableGraph(build(), { ledger: db.openLedger() });
    const paused = await graph.invoke({ log: [] }, thread(what));
    expect(paused).toHaveProperty("__interrupt__");
    expect(paused.log).not.toContain("after");
    expect(await stepsOf(db, what)).toMatchObject([{ state: "NEEDS_RECONCILIATION" }]);
    const { values, next } = await graph.getState(thread(what));
    expect(values.log).toEqual([]);
    expect(next).toHaveLength(1);
  });
});

it("a step that a plain node leaves open is waited for, recorded, and an error that names it", async () => {
  const graph = durableGraph(
    graphOf(async (_state, runtime) => {
      const { step } = durable(runtime);
      void step.write("pay", {}, () => later(50).then(() => "paid")).catch(() => undefined);
      return { log: ["returned"] };
    }),
    { ledger: db.openLedger() },
  );
  await expect(graph.invoke({ log: [] }, thread("open"))).rejects.toMatchObject({
    code: "STEP_USAGE",
    message: expect.stringContaining('"pay" were still open'),
  });
  expect(await stepsOf(db, "open")).toMatchObject([{ name: "pay", state: "SUCCEEDED" }]);
});
