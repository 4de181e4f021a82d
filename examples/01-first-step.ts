// A step is remembered. The node fails after its step, as a process may die there; when it runs again, the step gives back
// what it gave before, and the world is not asked a second time.
// Run it: npx tsx examples/01-first-step.ts
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger } from "langgraph-longhaul";

const State = Annotation.Root({ city: Annotation<string>, weather: Annotation<string> });
const ledger = openLedger();
const world = { asked: 0, fails: true };

const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "look",
      durableNode(State, async ({ city }, { step }) => {
        const weather = await step.read("weather", { city }, async () => {
          world.asked += 1;
          return `sun over ${city}, asked ${world.asked} time(s)`;
        });
        if (world.fails) throw new Error("the node fails after its step");
        return { weather };
      }),
    )
    .addEdge(START, "look"),
  { ledger },
);

const config = { configurable: { thread_id: `first-${process.pid}` } };
await graph.invoke({ city: "Paris" }, config).catch((error: Error) => console.log(`first run:  ${error.message}`));
world.fails = false;
// null goes on where the thread is; the input again would be new work.
const { weather } = await graph.invoke(null, config);
console.log(`second run: ${weather}`);
console.log(`the world was asked ${world.asked} time(s)`);
await ledger.close();
