// VER-03 (TradingAgents#1089): a setting that shapes the graph is no part of its identity, so a resume goes on with the old graph and
// skips what is new.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf, decide, durableGraph, durableNode, graphShape, type Ledger } from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { testDatabase } from "../support/database.js";

let ledger: Ledger;
beforeAll(async () => {
  ledger = (await testDatabase()).openLedger();
});

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });

let dies = true;
/** Opens the market, asks each analyst, and trades. */
function trading(analysts: readonly string[], settings: Record<string, string> = {}) {
  const says = (name: string) =>
    durableNode(State, async (_state, { step }) => {
      if (name === "trade" && dies) throw new Error("the process dies");
      return { log: [await step.write(name, {}, async () => name)] };
    });
  const builder = new StateGraph(State)
    .addNode("open", says("open"))
    .addNode("trade", says("trade"))
    .addEdge(START, "open") as StateGraph<typeof State, typeof State.State, typeof State.Update, string>;
  let last = "open";
  for (const name of analysts) {
    builder.addNode(name, says(name)).addEdge(last, name);
    last = name;
  }
  builder.addEdge(last, "trade").addEdge("trade", END);
  return durableGraph(builder, { ledger, pins: { graph: graphShape(builder), ...settings } });
}

describe("VER-03: settings that shape the graph", () => {
  it("VER-03: are part of what a thread is held to: another analyst waits for a person, and nothing goes on in silence", async () => {
    dies = true;
    await expect(trading(["old"]).invoke({}, thread("analysts"))).rejects.toThrow("dies");
    dies = false;
    const next = trading(["new"]);
    await next.invoke(null, thread("analysts"));
    const [card] = await approvalsOf(ledger, { threadId: "analysts", status: "pending" });
    expect(card).toMatchObject({ action: "use another version of graph", args: { tool: "graph" } });
    expect((await next.getState(thread("analysts"))).values).toEqual({ log: ["open", "old"] });
    // As it was begun, it goes on.
    const { log } = await trading(["old"]).invoke(null, thread("analysts"));
    expect(log).toEqual(["open", "old", "trade"]);
  });

  it("VER-03: go on with a new value when a person says so", async () => {
    dies = true;
    await expect(trading(["old"], { risk: "low" }).invoke({}, thread("risk"))).rejects.toThrow("dies");
    dies = false;
    const next = trading(["old"], { risk: "high" });
    await next.invoke(null, thread("risk"));
    const [card] = await approvalsOf(ledger, { threadId: "risk", status: "pending" });
    expect(card?.args).toMatchObject({ tool: "risk", from: "low", to: "high" });
    await decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision: { status: "approved" } });
    expect((await next.invoke(null, thread("risk"))).log).toEqual(["open", "old", "trade"]);
  });

  it("VER-03: the shape tells graphs apart by nodes and edges, not by the order in which they were added", () => {
    const node = () => ({ log: [] });
    const ab = new StateGraph(State).addNode("a", node).addNode("b", node).addEdge(START, "a").addEdge("a", "b");
    const ba = new StateGraph(State).addNode("b", node).addNode("a", node).addEdge("a", "b").addEdge(START, "a");
    const more = new StateGraph(State).addNode("a", node).addNode("b", node).addEdge(START, "a").addEdge("a", "b");
    more.addConditionalEdges("b", () => END);
    expect(graphShape(ab)).toBe(graphShape(ba));
    expect(graphShape(ab)).not.toBe(graphShape(more));
    expect(graphShape(ab.compile())).toBe(graphShape(ab));
    expect(() => graphShape({})).toThrow(/StateGraph/);
  });
});
