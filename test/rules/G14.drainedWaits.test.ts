// G14: what time ends leaves the graph as GraphDrained, so that no retryPolicy, errorHandler or ToolNode takes it for a
// failure, and the node is reached again when it is due.

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { drainReason, durableGraph, durableNode, durableTool } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { RETRY, State, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const busy = () => Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "60" } });

describe("G14: a retry that is due later", () => {
  it("is no failure to a retryPolicy or an errorHandler: nothing is undone, and the node runs when it is due", async () => {
    const ran: string[] = [];
    const effects: string[] = [];
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (_state, { step }) => {
            ran.push("pay");
            return {
              log: [
                await step.write("pay", {}, async () => {
                  if (effects.push("pay") === 1) throw busy();
                  return "paid";
                }),
              ],
            };
          }),
          {
            retryPolicy: RETRY,
            ends: ["undo", "z"],
            errorHandler: () => {
              ran.push("errorHandler");
              return new Command({ goto: "undo" });
            },
          },
        )
        .addNode("undo", async () => {
          ran.push("undo");
          return { log: ["undo"] };
        })
        .addNode("z", async () => ({ log: ["z"] }))
        .addEdge(START, "pay")
        .addEdge("pay", "z")
        .addEdge("z", END)
        .addEdge("undo", END),
      { ledger: db.openLedger() },
    );
    const left = await graph.invoke({ log: [] }, thread("later")).catch(drainReason);
    expect(left).toMatchObject({ kind: "due", threadId: "later", dueAt: expect.any(String) });
    expect(ran).toEqual(["pay"]);
    expect(await stepsOf(db, "later")).toMatchObject([{ state: "RETRY_SCHEDULED", attempt: 1, doubt: false }]);
    // Too early, it is left again at once.
    expect(await graph.invoke(null, thread("later")).catch(drainReason)).toMatchObject({ kind: "due" });
    expect(effects).toEqual(["pay"]);
    await db.advance(61_000);
    expect((await graph.invoke(null, thread("later"))).log).toEqual(["paid", "z"]);
    expect(ran).toEqual(["pay", "pay", "pay"]);
    expect(effects).toEqual(["pay", "pay"]);
  });

  it("in a tool is no error message to the model under a ToolNode", async () => {
    let sent = 0;
    const charge = tool(
      async () => {
        if (++sent === 1) throw busy();
        return "charged";
      },
      { name: "charge", description: "Charges.", schema: z.object({}) },
    );
    const calls = [{ type: "tool_call" as const, id: "call_1", name: "charge", args: {} }];
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("tools", new ToolNode([durableTool(charge, { version: "1.0.0", effect: "write" })]))
        .addEdge(START, "tools"),
      { ledger: db.openLedger() },
    );
    const input = { messages: [new HumanMessage("go"), new AIMessage({ content: "", tool_calls: calls })] };
    expect(await graph.invoke(input, thread("tool")).catch(drainReason)).toMatchObject({ kind: "due" });
    expect((await graph.getState(thread("tool"))).values.messages).toHaveLength(2);
    await db.advance(61_000);
    const { messages } = await graph.invoke(null, thread("tool"));
    expect(messages.map((message: { content: unknown }) => message.content)).toEqual(["go", "", "charged"]);
    expect(sent).toBe(2);
  });
});
