// The conversation in a process that may be killed.
import { openLedger } from "../../src/index.js";
import { conversation } from "./conversation.js";

const [url = "", baseUrl = "", again] = process.argv.slice(2);
const graph = conversation(openLedger({ url, leaseMs: 2000 }), baseUrl, { budget: { tokens: 100_000 } });
const input = again === undefined ? { texts: [] } : null;
console.log(JSON.stringify(await graph.invoke(input, { configurable: { thread_id: "killed" } })));
process.exit(0);
