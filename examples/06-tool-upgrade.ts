// The team ships on Tuesday while Monday's thread is asleep, and its tool takes other arguments now. The thread waits for a person,
// who lets it go on through the tool's `migrate`. Nothing is upgraded in silence.
// Run it: npx tsx examples/06-tool-upgrade.ts
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { approvalsOf, decide, durableGraph, durableTool, openLedger, toolRegistry } from "langgraph-longhaul";
import { z } from "zod";

const ledger = openLedger();
const sends = { name: "send", description: "Sends a letter." };
const send = (args: object) => {
  console.log(`sent: ${JSON.stringify(args)}`);
  return "sent";
};

const moved = ([name = "", city = ""]: string[]) => ({ name, city });

const monday = durableTool(tool(send, { ...sends, schema: z.object({ to: z.string() }) }), {
  version: "1.0.0",
  effect: "write",
});
const tuesday = durableTool(tool(send, { ...sends, schema: z.object({ name: z.string(), city: z.string() }) }), {
  version: "2.0.0",
  effect: "write",
  migrate: { input: (args) => moved((args as { to: string }).to.split(", ")) },
});

function build(tools: ReturnType<typeof toolRegistry>) {
  const letter = (id: string, to: string) =>
    new AIMessage({ content: "", tool_calls: [{ id, name: "send", args: { to } }] });
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("ask", () => ({ messages: [letter("1", "Ann, Paris")] }))
    .addNode("first", new ToolNode([...tools.tools]))
    .addNode("sleep", () => {
      interrupt("until Tuesday");
      return { messages: [letter("2", "Bob, Rome")] };
    })
    .addNode("second", new ToolNode([...tools.tools]))
    .addEdge(START, "ask")
    .addEdge("ask", "first")
    .addEdge("first", "sleep")
    .addEdge("sleep", "second");
  return durableGraph(builder, { ledger, tools });
}

const config = { configurable: { thread_id: `letters-${process.pid}` } };
await build(toolRegistry([monday])).invoke({ messages: [] }, config);
const upgraded = build(toolRegistry([tuesday]));
await upgraded.invoke(new Command({ resume: "morning" }), config);
const [card] = await approvalsOf(ledger, { threadId: config.configurable.thread_id, status: "pending" });
const { tool: name, from, to, choice } = (card?.args ?? {}) as Record<string, string>;
console.log(`asked: ${name} ${from} -> ${to}, ${choice}?`);
await decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision: { status: "approved" } });
await upgraded.invoke(null, config);
await ledger.close();
