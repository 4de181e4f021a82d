// Small graphs whose nodes write their names, so that a state reads as the history of a run.
import { Annotation, DeltaChannel, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

export const Items = Annotation.Root({
  items: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

/** a, b, c, one after the other. `during` runs inside a node before it writes. */
export function linear(checkpointer: BaseCheckpointSaver, during: (node: string) => Promise<void> | void = () => {}) {
  const node = (name: string) => async () => {
    await during(name);
    return { items: [name] };
  };
  return new StateGraph(Items)
    .addNode("a", node("a"))
    .addNode("b", node("b"))
    .addNode("c", node("c"))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", "c")
    .addEdge("c", END)
    .compile({ checkpointer });
}

/** b asks a person. */
export function asking(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(Items)
    .addNode("a", () => ({ items: ["a"] }))
    .addNode("b", () => ({ items: [`b${interrupt("go on?")}`] }))
    .addNode("c", () => ({ items: ["c"] }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", "c")
    .addEdge("c", END)
    .compile({ checkpointer });
}

/** Two nodes, to stand as a node in another graph. */
export function inner(checkpointer?: true) {
  return new StateGraph(Items)
    .addNode("i1", () => ({ items: ["i1"] }))
    .addNode("i2", () => ({ items: ["i2"] }))
    .addEdge(START, "i1")
    .addEdge("i1", "i2")
    .addEdge("i2", END)
    .compile(checkpointer === undefined ? {} : { checkpointer });
}

/** a, the subgraph s, z. */
export function nested(checkpointer: BaseCheckpointSaver, ownHistory?: true) {
  return new StateGraph(Items)
    .addNode("a", () => ({ items: ["a"] }))
    .addNode("s", inner(ownHistory))
    .addNode("z", () => ({ items: ["z"] }))
    .addEdge(START, "a")
    .addEdge("a", "s")
    .addEdge("s", "z")
    .addEdge("z", END)
    .compile({ checkpointer });
}

const Log = Annotation.Root({
  log: () =>
    new DeltaChannel<string[], string[]>((state, writes) => state.concat(...writes), { initialValueFactory: () => [] }),
});

/** Five tasks that end in another order than they were sent in. */
export function fanIn(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(Log)
    .addNode("plan", () => ({}))
    .addNode("w", async (input: { name: string; turns: number }) => {
      for (let i = 0; i < input.turns; i++) await new Promise((resolve) => setImmediate(resolve));
      return { log: [input.name] };
    })
    .addNode("end", () => ({}))
    .addEdge(START, "plan")
    .addConditionalEdges("plan", () =>
      ["w5", "w1", "w3", "w2", "w4"].map((name, i) => new Send("w", { name, turns: 50 - 10 * i })),
    )
    .addEdge("w", "end")
    .addEdge("end", END)
    .compile({ checkpointer });
}
