// The code-migration graph: takes a package from CommonJS to ES modules, one commit a file, until its own tests pass.
// However often its process dies, no edit is applied twice, no file is left half written, and no recorded model call is paid
// again. Importing this file opens nothing; LangGraph Studio and `langgraphjs dev` load `graph` as it is.
import { END, START, StateGraph } from "@langchain/langgraph";
import { type DurableOptions, durableGraph, openLedger } from "langgraph-longhaul";
import { applyEdit } from "./applyEdit.js";
import { approve } from "./approve.js";
import { baseline } from "./baseline.js";
import { checkout } from "./checkout.js";
import { deliver } from "./deliver.js";
import { writePatch } from "./delivery/patch.js";
import { openPullRequest } from "./delivery/pullRequest.js";
import { pushBranch } from "./delivery/push.js";
import { editFile } from "./editFile.js";
import { judge } from "./judge.js";
import { migrateManifest } from "./manifest.js";
import { nextBatch, plan, sendBatch } from "./plan.js";
import { readSettings } from "./settings.js";
import { createWorkTree } from "./source/createWorkTree.js";
import { FileInput, MigrationInput, MigrationState } from "./state.js";

const unlessRefused =
  <N extends string>(next: N) =>
  (state: MigrationState): N | typeof END =>
    state.outcome === undefined ? next : END;

const builder = new StateGraph({ stateSchema: MigrationState, input: MigrationInput })
  .addNode("check out", checkout)
  .addNode("baseline", baseline)
  .addNode("plan", plan)
  .addNode("edit file", editFile, { input: FileInput })
  .addNode("next batch", nextBatch)
  .addNode("edit manifest", migrateManifest)
  .addNode("run tests", judge, { ends: ["approve", "edit file", END] })
  .addNode("approve", approve, { ends: ["deliver", END] })
  .addNode("deliver", deliver)
  .addEdge(START, "check out")
  .addConditionalEdges("check out", unlessRefused("baseline"), ["baseline", END])
  .addConditionalEdges("baseline", unlessRefused("plan"), ["plan", END])
  .addConditionalEdges("plan", sendBatch, ["edit file", "edit manifest"])
  .addEdge("edit file", "next batch")
  .addConditionalEdges("next batch", sendBatch, ["edit file", "edit manifest", "run tests"])
  .addEdge("edit manifest", "run tests")
  .addEdge("deliver", END);

/** The same graph on a ledger of your own. At the end of its budget it pauses until there is more. */
export function migrationGraph(ledger: DurableOptions["ledger"], budgetUsd?: number) {
  return durableGraph(builder.compile({ name: "codeMigration" }), {
    ledger,
    ...(budgetUsd === undefined ? {} : { budget: { usd: budgetUsd } }),
    operations: [createWorkTree, applyEdit, writePatch, pushBranch, openPullRequest],
  });
}

export const graph = migrationGraph(openLedger(), readSettings().budgetUsd);
