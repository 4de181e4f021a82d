import { END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, type Ledger, type ThreadBudget } from "../../src/index.js";
import { State } from "../rules/harness.js";

export type Node = (state: typeof State.State, runtime: LangGraphRunnableConfig) => Promise<typeof State.Update>;

/** A durable graph of one plain node. */
export function nodeGraph(ledger: Ledger, node: Node, budget?: ThreadBudget) {
  const builder = new StateGraph(State).addNode("node", node).addEdge(START, "node").addEdge("node", END);
  return durableGraph(builder, { ledger, ...(budget === undefined ? {} : { budget }) });
}
