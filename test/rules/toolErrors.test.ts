// An error of ours in a tool is no answer to the model: it would call again, with a new tool_call_id and so a new key.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { drainReason, durableGraph, durableTool, openLedger } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";
import { stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  db = await testDatabase();
  pool = new pg.Pool({ connectionString: db.url });
});
afterAll(() => pool.end());

/** A model that calls until it is told that the charge went through, and a ledger that is away when `away` says so. */
function agent(away: (statement: string) => boolean) {
  const sent: string[] = [];
  let calls = 0;
  const listening = listeningPool(pool, async (name, send) => {
    if (away(name)) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return send();
  });
  const charge = tool(async () => `charged ${sent.push("charge")}`, {
    name: "charge",
    description: "Charges.",
    schema: z.object({}),
  });
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("agent", async ({ messages }) => {
      if (String(messages.at(-1)?.content).startsWith("charged")) return { messages: [new AIMessage("done")] };
      const call = { type: "tool_call" as const, id: `call_${++calls}`, name: "charge", args: {} };
      return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
    })
    .addNode("tools", new ToolNode([durableTool(charge, { version: "1.0.0", effect: "write" })]))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", ({ messages }) => (messages.at(-1)?.content === "done" ? END : "tools"))
    .addEdge("tools", "agent");
  return { sent, graph: durableGraph(builder, { ledger: openLedger({ pool: listening }) }) };
}

describe("a ledger that is away while a tool's receipt is recorded", () => {
  it("ends the run as drained, and no error message makes the model charge again", async () => {
    let lost = 0;
    const { graph, sent } = agent((name) => name === "lh_succeed" && lost++ < 6);
    const run = graph.invoke({ messages: [new HumanMessage("go")] }, thread("receipt"));
    expect(await run.catch(drainReason)).toMatchObject({
      kind: "unrecorded",
      message: expect.stringContaining("PostgreSQL cannot be reached"),
    });
    expect(sent).toEqual(["charge"]);
    expect((await graph.getState(thread("receipt"))).values.messages).toHaveLength(2);
    expect(await stepsOf(db, "receipt")).toMatchObject([{ state: "RUNNING", attempt: 1 }]);
  });
});
