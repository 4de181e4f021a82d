// A graph with a subgraph that keeps a history of its own, and one that does not.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, type Ledger } from "../../src/index.js";

const Items = Annotation.Root({
  items: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const Visits = Annotation.Root({
  items: Annotation<string[]>,
  visits: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
});

export function graph(ledger: Ledger) {
  const remembering = new StateGraph(Visits)
    .addNode("count", () => ({ visits: 1 }))
    .addNode("tell", ({ visits }) => ({ items: [`visit ${visits}`] }))
    .addEdge(START, "count")
    .addEdge("count", "tell")
    .addEdge("tell", END)
    .compile({ checkpointer: true });
  const forgetting = new StateGraph(Visits)
    .addNode("count", () => ({ visits: 1 }))
    .addNode("tell", ({ visits }) => ({ items: [`only ${visits}`] }))
    .addEdge(START, "count")
    .addEdge("count", "tell")
    .addEdge("tell", END)
    .compile();
  const builder = new StateGraph(Items)
    .addNode("remembers", remembering)
    .addNode("forgets", forgetting)
    .addEdge(START, "remembers")
    .addEdge("remembers", "forgets")
    .addEdge("forgets", END);
  return durableGraph(builder, { ledger });
}
