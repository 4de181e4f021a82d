// INT-05 (langgraphjs#2179, langgraph#7038): an old answer passes the gate after time travel. Here: also where the tool behind the gate
// has another version by then.
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { expect, it } from "vitest";
import { z } from "zod";
import { approvalsOf, decide, durableGraph, durableTool, toolRegistry } from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { testDatabase } from "../support/database.js";

const db = await testDatabase();
const ledger = db.openLedger();
const paid: unknown[] = [];

function bank(version: string, schema: z.ZodObject, migrate?: object) {
  const plain = tool(
    async (args: Record<string, unknown>) => {
      paid.push(args);
      return "paid";
    },
    { name: "pay", description: "Pays.", schema },
  );
  const options = { version, effect: "write", approval: {}, ...(migrate === undefined ? {} : { migrate }) } as const;
  const registry = toolRegistry([durableTool(plain, options)]);
  return durableGraph(
    new StateGraph(MessagesAnnotation).addNode("pay", new ToolNode([...registry.tools])).addEdge(START, "pay"),
    { ledger, tools: registry },
  );
}
const v1 = () => bank("1.0.0", z.object({ amount: z.number() }));
const v2 = () =>
  bank("2.0.0", z.object({ cents: z.number() }), {
    input: (args: { amount: number }) => ({ cents: args.amount * 100 }),
  });
const call = (amount: number) =>
  new AIMessage({ id: "m", content: "", tool_calls: [{ id: "c", name: "pay", args: { amount } }] });
const pending = async () => (await approvalsOf(ledger, { threadId: "t", status: "pending" }))[0];
async function say(yes: string | undefined) {
  const card = await pending();
  expect(card?.action).toBe(yes);
  await decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision: { status: "approved" } });
}

it("INT-05: a fork with another amount is asked about again, on the version before and on the one after", async () => {
  await v1().invoke({ messages: [call(10)] }, thread("t"));
  const before = (await v1().getState(thread("t"))).config;
  await say("pay");
  await v1().invoke(null, thread("t"));
  expect(paid).toEqual([{ amount: 10 }]);
  // From before the payment, with a hundredfold amount.
  const fork = await v1().updateState(before, { messages: [call(1000)] }, START);
  await v1().invoke(null, fork as never);
  expect((await pending())?.args).toEqual({ amount: 1000 });
  expect(paid).toHaveLength(1);
  // The yes comes, and a build with another version after it: the yes was for the tool as it was.
  await say("pay");
  await v2().invoke(null, thread("t"));
  await say("use another version of pay");
  await v2().invoke(null, thread("t"));
  expect(paid).toHaveLength(1);
  expect((await pending())?.args).toEqual({ cents: 100_000 });
  await say("pay");
  await v2().invoke(null, thread("t"));
  expect(paid).toEqual([{ amount: 10 }, { cents: 100_000 }]);
  const keys = await db.sql<{ key: string }>(
    "select encode(key, 'hex') as key from longhaul.steps where thread_id = 't'",
  );
  expect(new Set(keys.map(({ key }) => key)).size).toBe(2);
});
