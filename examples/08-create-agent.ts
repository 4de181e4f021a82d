// An agent that refunds, made with createAgent, changed in three lines: the middleware, durableGraph, the approval. It asks before
// it pays 120 dollars and its process ends; the next process pays, once, and no answer of the model is paid for again.
// Run it: npx tsx examples/08-create-agent.ts
import { tool } from "@langchain/core/tools";
import { createAgent } from "langchain";
import { approvalsOf, currentStep, decide, durableGraph, openLedger } from "langgraph-longhaul";
import { durableAgent } from "langgraph-longhaul/langchain";
import { z } from "zod";
import { offlineModel } from "./offlineModel.js";

const { model, asked, stop } = await offlineModel((server) =>
  server
    .onTurn(0, /.*/, { toolCalls: [{ name: "order", arguments: { id: 7 } }] })
    .onTurn(1, /.*/, { toolCalls: [{ name: "refund", arguments: { id: 7, usd: 120 } }] })
    .onTurn(2, /.*/, { content: "The 120 dollars are on their way." }),
);
const refunds = new Map<string, number>();

const tools = [
  tool(async () => "120 dollars", { name: "order", description: "Looks up.", schema: z.object({ id: z.number() }) }),
  tool(
    async ({ usd }) => {
      refunds.set(currentStep().idempotencyKey, usd); // what a payment provider does with the key
      return `refunded ${usd}`;
    },
    { name: "refund", description: "Pays back.", schema: z.object({ id: z.number(), usd: z.number() }) },
  ),
];

function start() {
  const ledger = openLedger();
  const durable = durableAgent({
    tools: { order: { version: "1.0.0", effect: "read" }, refund: { version: "1.0.0", effect: "write" } },
    approvals: { refund: { approvers: ["role:finance"], when: ({ usd }) => Number(usd) > 100 } },
  });
  return { ledger, agent: durableGraph(createAgent({ model, tools, middleware: [durable] }), { ledger }) };
}

const config = { configurable: { thread_id: `refund-${process.pid}` } };
const monday = start();
await monday.agent.invoke({ messages: [{ role: "user", content: "Order 7 came broken." }] }, config);
await monday.ledger.close();
console.log(`first process:  ${asked()} answers paid, ${refunds.size} refunds`);

const { ledger, agent } = start();
const [request] = await approvalsOf(ledger, { threadId: config.configurable.thread_id });
console.log(`it asks:        ${request?.action} ${JSON.stringify(request?.args)}`);
await decide(ledger, {
  approvalId: request?.id ?? "",
  by: "fay",
  roles: ["finance"],
  decision: { status: "approved" },
});
const { messages } = await agent.invoke(null, config);
console.log(`second process: ${asked()} answers paid, ${refunds.size} refunds`);
console.log(`it says:        ${messages.at(-1)?.text}`);
await ledger.close();
await stop();
