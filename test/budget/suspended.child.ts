// A run that works for two seconds of its own time, and is stopped in the middle by its parent. argv: database address.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger } from "../../src/index.js";

const [url = ""] = process.argv.slice(2);
const State = Annotation.Root({ log: Annotation<string[]> });
const ledger = openLedger({ url });
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "work",
      durableNode(State, async (_state, { step }) => {
        await step.read("work", null, async () => {
          say({ event: "working" });
          // Ticks, so that time in which the process stands still is not slept through.
          for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 100));
          return null;
        });
        return { log: ["worked"] };
      }),
    )
    .addEdge(START, "work")
    .addEdge("work", END),
  { ledger, budget: { idleMs: 3000, activeMs: 20_000 } },
);
const { log } = await graph.invoke({ log: [] }, { configurable: { thread_id: "suspended" } });
say({ event: "done", log });
await ledger.close();
