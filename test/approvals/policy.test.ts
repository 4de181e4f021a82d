// What the code's own policy forbids is not asked for, not allowed by an edit, and not done later when the policy has changed.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  approvalNode,
  approvalsOf,
  decide,
  durableGraph,
  durableNode,
  durableTool,
  type Ledger,
  requestApproval,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const statuses = async (threadId: string) =>
  (await approvalsOf(ledger, { threadId })).map(({ status }) => status).reverse();
const pendingId = async (threadId: string) => {
  const [approval] = await approvalsOf(ledger, { threadId, status: "pending" });
  return approval?.id ?? "";
};

/** A graph that pays by a tool which needs approval, up to a limit that can change. */
function paying(limit: { max: number }) {
  const paid: number[] = [];
  const pay = durableTool(
    tool(
      async ({ amount }: { amount: number }) => {
        paid.push(amount);
        return "paid";
      },
      { name: "pay", description: "pays", schema: z.object({ amount: z.number() }) },
    ),
    {
      version: "1.0.0",
      effect: "write",
      approval: { policy: ({ amount }) => (amount > limit.max ? `over ${limit.max}` : undefined) },
    },
  );
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("tools", new ToolNode([pay]))
    .addEdge(START, "tools")
    .addEdge("tools", END);
  const graph = durableGraph(builder, { ledger });
  const call = (amount: number) => ({
    messages: [new AIMessage({ content: "", tool_calls: [{ id: "call_1", name: "pay", args: { amount } }] })],
  });
  const told = (result: { messages: unknown[] }) =>
    result.messages.filter((one) => ToolMessage.isInstance(one)).at(-1)?.text;
  return { graph, call, paid, told };
}

describe("the policy of a tool's approval", () => {
  it("has what it forbids refused before anybody can allow it, and the model told why", async () => {
    const { graph, call, paid, told } = paying({ max: 100 });
    const result = await graph.invoke(call(500), thread("forbidden"));
    expect(told(result)).toMatch(/"pay".+over 100.+not done/);
    expect([await statuses("forbidden"), paid]).toEqual([["superseded"], []]);
  });

  it("asks again where an edit is against it, and takes one that is not", async () => {
    const { graph, call, paid } = paying({ max: 100 });
    await graph.invoke(call(50), thread("edits"));
    const edit = async (amount: number) =>
      decide(ledger, {
        approvalId: await pendingId("edits"),
        by: "ann",
        decision: { status: "edited", args: { amount } },
      });
    await edit(5000);
    expect(await graph.invoke(null, thread("edits"))).toHaveProperty("__interrupt__");
    expect([await statuses("edits"), paid]).toEqual([["superseded", "pending"], []]);
    await edit(60);
    await graph.invoke(null, thread("edits"));
    expect(paid).toEqual([60]);
  });

  it("is asked once more when the thread goes on, and never about what is done", async () => {
    const limit = { max: 100 };
    const { graph, call, paid, told } = paying(limit);
    await graph.invoke(call(50), thread("changed"));
    await decide(ledger, { approvalId: await pendingId("changed"), by: "ann", decision: { status: "approved" } });
    limit.max = 10;
    expect(told(await graph.invoke(null, thread("changed")))).toContain("over 10");
    expect(paid).toEqual([]);

    limit.max = 100;
    await graph.invoke(call(50), thread("done"));
    await decide(ledger, { approvalId: await pendingId("done"), by: "ann", decision: { status: "approved" } });
    await graph.invoke(null, thread("done"));
    expect(paid).toEqual([50]);
    limit.max = 10;
    const before = (await graph.getState(thread("done"))).config;
    expect(before).toBeDefined();
    expect(await statuses("done")).toEqual(["approved"]);
  });
});

it("The policy of a node and of a request is an error of theirs, with its reason; what it throws is one too", async () => {
  const node = approvalNode({
    request: () => ({ action: "publish", args: { title: "no" } }),
    policy: ({ title }) => (title === "no" ? "not this title" : undefined),
    decided: () => ({}),
  });
  const inNode = durableGraph(new StateGraph(State).addNode("ask", node).addEdge(START, "ask"), { ledger });
  await expect(inNode.invoke({ log: [] }, thread("node"))).rejects.toMatchObject({
    code: "APPROVAL_REJECTED",
    message: expect.stringContaining("not this title"),
  });
  const asking = durableNode(State, async (_, runtime) => {
    await requestApproval(
      runtime,
      { action: "delete", args: { path: "/" } },
      { policy: () => Promise.reject(new Error("never the root")) },
    );
    return {};
  });
  const inCode = durableGraph(new StateGraph(State).addNode("ask", asking).addEdge(START, "ask"), { ledger });
  await expect(inCode.invoke({ log: [] }, thread("code"))).rejects.toThrow("never the root");
  expect(() =>
    approvalNode({ request: () => ({ action: "a", args: 1 }), decided: () => ({}), policy: 5 as never }),
  ).toThrow(/`policy` to be a function/);
});
