// The research graph: reads many pages under a few topics and publishes one report with citations.
// However often its process dies, no recorded page is fetched again, no recorded model call is paid again, and the report
// is published once. Importing this file opens nothing; LangGraph Studio and `langgraphjs dev` load `graph` as it is.
import { END, START, StateGraph } from "@langchain/langgraph";
import { type DurableOptions, durableGraph, openLedger } from "langgraph-longhaul";
import { plan, sendResearchers } from "./plan.js";
import { publish, publishReport } from "./publish.js";
import { researcher } from "./researcher.js";
import { ResearchInput, ResearchState } from "./state.js";
import { synthesis } from "./synthesis.js";
import { researchTools } from "./tools.js";

const builder = new StateGraph({ stateSchema: ResearchState, input: ResearchInput })
  .addNode("plan", plan)
  .addNode("researcher", researcher)
  .addNode("synthesis", synthesis)
  .addNode("publish", publish)
  .addEdge(START, "plan")
  .addConditionalEdges("plan", sendResearchers, ["researcher"])
  .addEdge("researcher", "synthesis")
  .addEdge("synthesis", "publish")
  .addEdge("publish", END);

/** The same graph on a ledger of your own. */
export function researchGraph(ledger: DurableOptions["ledger"]) {
  return durableGraph(builder.compile({ name: "research" }), {
    ledger,
    tools: researchTools,
    operations: [publishReport],
  });
}

export const graph = researchGraph(openLedger());
