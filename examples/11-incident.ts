// An agent looks into an incident at night. It may read what it likes; before it restarts anything it pages whoever is on call,
// by a signed webhook, and waits for the answer as long as it takes.
// Run it: npx tsx examples/11-incident.ts
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { tool } from "@langchain/core/tools";
import { createAgent } from "langchain";
import { decide, deliverOutbox, durableGraph, openLedger, registerWebhook, verifyWebhook } from "langgraph-longhaul";
import { durableAgent } from "langgraph-longhaul/langchain";
import { z } from "zod";
import { offlineModel } from "./offlineModel.js";

const { model, stop } = await offlineModel((server) =>
  server
    .onTurn(0, /.*/, { toolCalls: [{ name: "logs", arguments: { service: "api" } }] })
    .onTurn(1, /.*/, { toolCalls: [{ name: "restart", arguments: { service: "api" } }] })
    .onTurn(2, /.*/, { content: "The api ran out of memory; it is up again." }),
);
const command = (name: string, answer: string) =>
  tool(
    async ({ service }) => {
      console.log(`${name} ${service}: ${answer}`);
      return answer;
    },
    { name, description: `The ${name} of a service.`, schema: z.object({ service: z.string() }) },
  );
const tools = [command("logs", "OutOfMemory"), command("restart", "done")];

// The pager of whoever is on call.
const secret = `whsec_${randomBytes(32).toString("base64")}`;
const pages: { type: string; data: { approvalId: string; action: string } }[] = [];
const pager = createServer(async (request, response) => {
  const body = await text(request);
  verifyWebhook({ headers: request.headers, body, secret });
  response.end(String(pages.push(JSON.parse(body))));
});
await once(pager.listen(0, "127.0.0.1"), "listening");

const ledger = openLedger({ schema: "longhaul_incident" }); // its pager is not told of the other examples
const url = `http://127.0.0.1:${(pager.address() as AddressInfo).port}`;
await registerWebhook(ledger, { name: "pager", url, secret, kinds: ["requested"], allowPrivate: true });

const durable = durableAgent({
  tools: { logs: { version: "1.0.0", effect: "read" }, restart: { version: "1.0.0", effect: "write" } },
  approvals: { restart: { approvers: ["role:on-call"] } },
});
const agent = durableGraph(createAgent({ model, tools, middleware: [durable] }), { ledger });
const config = { configurable: { thread_id: `incident-${process.pid}` } };
await agent.invoke({ messages: [{ role: "user", content: "The api answers slowly." }] }, config);
await deliverOutbox(ledger); // a worker does so by itself
console.log(`paged: ${pages[0]?.type} ${pages[0]?.data.action}`);
const yes = { by: "olga", roles: ["on-call"], decision: { status: "approved" } } as const;
await decide(ledger, { approvalId: pages[0]?.data.approvalId ?? "", ...yes });
console.log((await agent.invoke(null, config)).messages.at(-1)?.text);
await ledger.close();
await stop();
pager.close();
