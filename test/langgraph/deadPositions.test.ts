// G16: what cannot be reached any more does not wait for ever.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode } from "../../src/index.js";
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

function graphThatWaits(error: object) {
  return durableGraph(
    new StateGraph(State)
      .addNode(
        "pay",
        durableNode(State, async (s, { step }) => ({
          log: [
            await step.write("pay", { n: s.n }, async () => {
              if (s.n === 1) throw Object.assign(new Error("not now"), error);
              return "paid";
            }),
          ],
        })),
      )
      .addEdge(START, "pay")
      .addEdge("pay", END),
    { ledger: db.openLedger() },
  );
}
const statesOf = (id: string) =>
  db.sql("select state, doubt_since is not null as doubt from longhaul.steps where thread_id = $1 order by seq", [id]);

describe("G16: a position that the thread has left", () => {
  it("takes the retry that waits there with it", async () => {
    const graph = graphThatWaits({ status: 429, headers: { "retry-after": "3600" } });
    await expect(graph.invoke({ n: 1 }, thread("left"))).rejects.toThrow(/longhaul:.*due/);
    expect(await statesOf("left")).toEqual([{ state: "RETRY_SCHEDULED", doubt: false }]);
    expect((await graph.invoke({ n: 2 }, thread("left"))).log).toEqual(["paid"]);
    expect(await statesOf("left")).toEqual([
      { state: "CANCELLED", doubt: false },
      { state: "SUCCEEDED", doubt: false },
    ]);
  });

  it("leaves what is in doubt to be settled", async () => {
    const graph = graphThatWaits({ code: "ECONNRESET" });
    await graph.invoke({ n: 1 }, thread("doubt"));
    expect((await graph.invoke({ n: 2 }, thread("doubt"))).log).toEqual(["paid"]);
    expect(await statesOf("doubt")).toEqual([
      { state: "NEEDS_RECONCILIATION", doubt: true },
      { state: "SUCCEEDED", doubt: false },
    ]);
  });
});
