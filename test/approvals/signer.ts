// Signs two contracts after approval, one by an approval node and one by a tool; what is signed is a row in a table.
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import type pg from "pg";
import { z } from "zod";
import { approvalNode, approvalsOf, decide, durable, durableGraph, durableTool, type Ledger } from "../../src/index.js";
import { State } from "../rules/harness.js";

export const SIGNED = "create table if not exists signed (thread text not null, contract text not null)";

export function signer(ledger: Ledger, pool: pg.Pool, thread: string) {
  const sign = async (contract: string) => {
    await pool.query("insert into signed values ($1, $2)", [thread, contract]);
    return contract;
  };
  /** The table is the world: what stands in it has happened. */
  const lookup = async (contract: string) => {
    const { rows } = await pool.query("select 1 from signed where thread = $1 and contract = $2", [thread, contract]);
    return rows.length > 0
      ? { outcome: "happened" as const, receipt: contract }
      : { outcome: "did-not-happen" as const };
  };
  const second = durableTool(
    tool(async ({ contract }: { contract: string }) => sign(contract), {
      name: "sign",
      description: "signs a contract",
      schema: z.object({ contract: z.string() }),
    }),
    { version: "1.0.0", effect: "write", settleMs: 1, lookup: ({ input }) => lookup(input.contract), approval: {} },
  );
  const builder = new StateGraph(State)
    .addNode(
      "ask",
      approvalNode({
        request: () => ({ action: "sign first", args: { contract: "first" } }),
        decided: ({ allowed }) => ({ log: [allowed ? "may sign" : "may not"] }),
      }),
    )
    .addNode("first", async (_state, runtime) => {
      const { step } = durable(runtime);
      const signed = await step.write("sign", "first", () => sign("first"), {
        settleMs: 1,
        lookup: () => lookup("first"),
      });
      return { log: [signed] };
    })
    .addNode("second", async (_state, config) => {
      const call = { name: "sign", args: { contract: "second" }, id: "call", type: "tool_call" as const };
      const { messages } = (await new ToolNode([second]).invoke(
        { messages: [new AIMessage({ content: "", tool_calls: [call] })] },
        config,
      )) as { messages: { content: unknown }[] };
      return { log: messages.map(({ content }) => String(content)) };
    })
    .addEdge(START, "ask")
    .addEdge("ask", "first")
    .addEdge("first", "second")
    .addEdge("second", END);
  return durableGraph(builder, { ledger });
}

/** Runs the thread to its end, and approves what it asks. */
export async function signAll(ledger: Ledger, pool: pg.Pool, thread: string): Promise<unknown> {
  const graph = signer(ledger, pool, thread);
  const config = { configurable: { thread_id: thread } };
  for (let turn = 0; turn < 20; turn++) {
    const stored = (await graph.getState(config)).config.configurable?.["checkpoint_id"] !== undefined;
    const state = await graph.invoke(stored ? null : { log: [] }, config);
    if (!("__interrupt__" in state)) return state;
    for (const { id } of await approvalsOf(ledger, { status: "pending", threadId: thread })) {
      await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
    }
  }
  throw new Error("It asks for ever.");
}
