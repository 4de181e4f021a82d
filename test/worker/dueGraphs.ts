// Durable graphs as a project's own module exports them, for `longhaul worker`. Their world is under WORLD_URL.
import { openLedger } from "../../src/index.js";
import { workerGraph } from "../support/workerGraph.js";

const ledger = openLedger();
export const graph = workerGraph(ledger, process.env["WORLD_URL"] ?? "", { shape: "three writes" });
