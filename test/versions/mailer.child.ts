// A process of one build: starts a thread, wakes it, or goes on with it, and prints what was mailed and where the thread stands.
import { Command } from "@langchain/langgraph";
import { graph, ledger, mailed } from "./mailGraph.js";

const [verb, thread_id] = process.argv.slice(2);
const input = verb === "start" ? { messages: [] } : verb === "wake" ? new Command({ resume: "morning" }) : null;
const config = { configurable: { thread_id } };
try {
  const left = await graph.invoke(input as never, config);
  const { next } = await graph.getState(config);
  const last = left.messages.at(-1)?.text;
  process.stdout.write(`${JSON.stringify({ mailed, next, last })}\n`);
} catch (error) {
  const { name, code, message } = error as Error & { code?: string };
  process.stdout.write(`${JSON.stringify({ mailed, error: { name, code, message } })}\n`);
}
await ledger.close();
