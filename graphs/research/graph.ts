// The research graph: reads many pages under a few topics and publishes one report with citations.
// However often its process dies, no recorded page is fetched again, no recorded model call is paid again, and the report
// is published once. Importing this file opens nothing; LangGraph Studio and `langgraphjs dev` load `graph` as it is.
import { END, START, StateGraph } from "@langchain/langgraph";
import { type DurableOptions, durableGraph, openLedger } from "langgraph-longhaul";
import { complete } from "./complete.js";
import { plan, sendResearchers } from "./plan.js";
import { publish, publishReport } from "./publish.js";
import { note, researcher } from "./researcher.js";
import { readSettings } from "./settings.js";
import { NoteInput, ResearchContext, ResearchInput, ResearchState } from "./state.js";
import { synthesis } from "./synthesis.js";
import { researchTools } from "./tools.js";

const builder = new StateGraph({ stateSchema: ResearchState, input: ResearchInput, context: ResearchContext })
  .addNode("plan", plan)
  .addNode("researcher", researcher)
  .addNode("note", note, { input: NoteInput })
  .addNode("synthesis", synthesis, { ends: ["publish", "complete"] })
  .addNode("publish", publish)
  .addNode("complete", complete, { ends: ["researcher", "note", END] })
  .addEdge(START, "plan")
  .addConditionalEdges("plan", sendResearchers, ["researcher"])
  .addEdge("researcher", "synthesis")
  .addEdge("note", "synthesis")
  .addEdge("publish", "complete");

/** The part of a budget that is kept for writing the report. */
const REPORT_SHARE = 0.25;

/** The same graph on a ledger of your own. With a budget it ends with what it could read, and says what is missing. */
export function researchGraph(ledger: DurableOptions["ledger"], budgetUsd?: number) {
  const wrapUp = budgetUsd === undefined ? undefined : { node: "synthesis", usd: budgetUsd * REPORT_SHARE };
  return durableGraph(builder.compile({ name: "research" }), {
    ledger,
    ...(budgetUsd === undefined || wrapUp === undefined ? {} : { budget: { usd: budgetUsd, wrapUp } }),
    tools: researchTools,
    operations: [publishReport],
  });
}

export const graph = researchGraph(openLedger(), readSettings().budgetUsd);
