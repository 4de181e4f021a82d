// G30: a model call is counted once however many handlers see it, and a duplicate tool_call_id causes no second effect.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel, durableTool, type StepEvent } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { State, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let model: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  model = await modelServer();
});

describe("G30: one count for a model call", () => {
  it("in a durable graph inside a durable graph, under two handlers of its own", async () => {
    const events: StepEvent[] = [];
    const ledger = db.openLedger({ onStep: (event) => events.push(event) });
    const chat = durableModel(model.chat());
    const ask = async () => ({ log: [(await chat.invoke("hello")).text] });
    const inner = durableGraph(new StateGraph(State).addNode("ask", ask).addEdge(START, "ask"), { ledger });
    const middle = new StateGraph(State).addNode("inner", inner).addEdge(START, "inner").compile();
    const outer = durableGraph(
      new StateGraph(State)
        .addNode("as a node", middle)
        .addNode("as a call", async () => ({ log: (await inner.invoke({ log: [] })).log }))
        .addEdge(START, "as a node")
        .addEdge("as a node", "as a call"),
      { ledger },
    );
    await outer.invoke({ log: [] }, thread("nested"));
    expect(model.requests()).toBe(2);
    expect(events.map(({ type, kind }) => ({ type, kind }))).toEqual([
      { type: "recorded", kind: "llm" },
      { type: "recorded", kind: "llm" },
    ]);
    const rows = await db.sql("select input_tokens::int as tokens from longhaul.steps where thread_id = 'nested'");
    expect(rows).toEqual([{ tokens: 1000 }, { tokens: 1000 }]);
  });
});

describe("G30: a duplicate tool_call_id in one message", () => {
  const run = async (id: string, amounts: readonly number[]) => {
    const sent: number[] = [];
    const charge = tool(
      async ({ amount }: { amount: number }) => {
        sent.push(amount);
        return `charged ${amount}`;
      },
      { name: "charge", description: "Charges.", schema: z.object({ amount: z.number() }) },
    );
    const tool_calls = amounts.map((amount) => ({
      type: "tool_call" as const,
      id: "call_1",
      name: "charge",
      args: { amount },
    }));
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("tools", new ToolNode([durableTool(charge, { version: "1.0.0", effect: "write" })]))
        .addEdge(START, "tools"),
      { ledger: db.openLedger() },
    );
    const input = { messages: [new HumanMessage("go"), new AIMessage({ content: "", tool_calls })] };
    const result = await graph.invoke(input, thread(id)).catch((error: unknown) => error);
    return { sent, result };
  };

  it("with equal arguments is one effect", async () => {
    const { sent } = await run("equal", [1, 1]);
    expect(sent).toEqual([1]);
    expect(await stepsOf(db, "equal")).toMatchObject([{ state: "SUCCEEDED", attempt: 1 }]);
  });

  it("with other arguments does not charge both", async () => {
    const { sent } = await run("other", [1, 2]);
    expect(sent).toHaveLength(1);
  });
});
