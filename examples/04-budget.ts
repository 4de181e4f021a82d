// An agent that would go on for ever has one cent. It stops before the call that could pass the cap, keeps what it has, and
// goes on where it was when somebody gives it more.
// Run it: npx tsx examples/04-budget.ts
import { Annotation, isInterrupted, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableModel, durableNode, openLedger, raiseBudget } from "langgraph-longhaul";
import { offlineModel } from "./offlineModel.js";

const { model, asked, stop } = await offlineModel((server) =>
  server.onMessage(/.*/, {
    content: "a thought",
    usage: { prompt_tokens: 5000, completion_tokens: 500, total_tokens: 5500 },
  }),
);
const ledger = openLedger();
const thinker = durableModel(model);
const State = Annotation.Root({ thoughts: Annotation<number> });

const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "think",
      durableNode(State, async ({ thoughts }) => {
        await thinker.invoke(`Think on, number ${thoughts + 1}.`);
        return { thoughts: thoughts + 1 };
      }),
    )
    .addEdge(START, "think")
    .addConditionalEdges("think", ({ thoughts }) => (thoughts < 8 ? "think" : "__end__")),
  { ledger, budget: { usd: 0.01 } },
);

const config = { configurable: { thread_id: `budget-${process.pid}` } };
const stopped = await graph.invoke({ thoughts: 0 }, config);
if (!isInterrupted<{ kind: string }>(stopped)) throw new Error("it should have stopped");
console.log(`${stopped["__interrupt__"][0]?.value?.kind} after ${stopped.thoughts} thoughts, ${asked()} paid`);
// The same from a terminal: longhaul budget raise <thread> --usd 1
await raiseBudget(ledger, { threadId: config.configurable.thread_id, usd: 1, by: "ann" });
const { thoughts } = await graph.invoke(null, config);
console.log(`raised by Ann: ${thoughts} thoughts, ${asked()} paid, none twice`);
await ledger.close();
await stop();
