// A deep agent hands two topics to subagents, which read for it. One budget holds all of them: it stops inside the second
// subagent, and goes on from there when it is raised, with no page read twice.
// Run it: npx tsx examples/09-deepagents.ts
import { tool } from "@langchain/core/tools";
import { isInterrupted } from "@langchain/langgraph";
import { createDeepAgent } from "deepagents";
import { durableGraph, openLedger, raiseBudget } from "langgraph-longhaul";
import { durableAgent } from "langgraph-longhaul/langchain";
import { z } from "zod";
import { offlineModel } from "./offlineModel.js";

const task = (topic: string) => ({
  name: "task",
  arguments: { description: `Read about ${topic}.`, subagent_type: "reader" },
});
const { model, asked, stop } = await offlineModel((server) => {
  for (const topic of ["rivers", "lakes"]) {
    const asks = new RegExp(`^Read about ${topic}`);
    server.onTurn(0, asks, { toolCalls: [{ name: "read_page", arguments: { page: topic } }] });
    server.onTurn(1, asks, { content: `All about ${topic}.` });
  }
  server.onTurn(0, /^Water/, { toolCalls: [task("rivers")] });
  server.onTurn(1, /^Water/, { toolCalls: [task("lakes")] });
  server.onTurn(2, /^Water/, { content: "Rivers flow, lakes do not." });
});
const read: string[] = [];
const readPage = tool(
  async ({ page }) => {
    read.push(page);
    return `The page on ${page}.`;
  },
  { name: "read_page", description: "Reads a page.", schema: z.object({ page: z.string() }) },
);

const ledger = openLedger();
const durable = durableAgent({ tools: { read_page: { version: "1.0.0", effect: "read" } } });
const reader = {
  name: "reader",
  description: "Reads.",
  systemPrompt: "You read.",
  tools: [readPage],
  middleware: [durable],
};
const deep = createDeepAgent({ model, middleware: [durable], subagents: [reader] });
const agent = durableGraph(deep, { ledger, budget: { modelCalls: 5 } });

const config = { configurable: { thread_id: `water-${process.pid}` }, recursionLimit: 100 };
const stopped = await agent.invoke({ messages: [{ role: "user", content: "Water, please." }] }, config);
if (!isInterrupted<{ kind: string }>(stopped)) throw new Error("it should have stopped");
console.log(`${stopped["__interrupt__"][0]?.value?.kind}: ${asked()} model calls, read ${read.join(", ")}`);

await raiseBudget(ledger, { threadId: config.configurable.thread_id, modelCalls: 20, by: "ann" });
const { messages } = await agent.invoke(null, config);
console.log(`raised by Ann: ${asked()} model calls, read ${read.join(", ")}`);
console.log(messages.at(-1)?.text);
await ledger.close();
await stop();
