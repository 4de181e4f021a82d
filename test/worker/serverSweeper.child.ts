// A script whose graph runs as on a LangGraph server, and that has nothing else to do then.
import { START, StateGraph } from "@langchain/langgraph";
import { durableGraph, openLedger } from "../../src/index.js";
import { State } from "../rules/harness.js";

const ledger = openLedger({ url: process.argv[2] ?? "" });
const builder = new StateGraph(State).addNode("n", async () => ({ log: ["ran"] })).addEdge(START, "n");
const served = { configurable: { thread_id: "served" }, metadata: { langgraph_host: "self-hosted" } };
process.stdout.write(`${JSON.stringify(await durableGraph(builder, { ledger }).invoke({ log: [] }, served))}\n`);
