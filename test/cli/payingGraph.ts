// A durable graph as a project's own module exports it, for the commands that take one. Its provider is an HTTP server
// under WORLD_URL.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger, operation } from "../../src/index.js";
import type { Payment } from "../support/world.js";

const State = Annotation.Root({ paid: Annotation<string> });
const world = process.env["WORLD_URL"] ?? "";

const pay = operation({
  name: "pay",
  version: "1.0.0",
  effect: "write",
  run: async ({ thread }: { thread: string }, { idempotencyKey }) => {
    const response = await fetch(`${world}/pay?thread=${thread}`, {
      method: "POST",
      headers: { "idempotency-key": idempotencyKey },
      body: JSON.stringify({ amount: 1 }),
    });
    return (await response.json()) as Payment;
  },
  lookup: async ({ idempotencyKey }) => {
    const response = await fetch(`${world}/lookup`, { headers: { "idempotency-key": idempotencyKey } });
    return response.ok
      ? { outcome: "happened", receipt: (await response.json()) as Payment }
      : { outcome: "did-not-happen" };
  },
  compensate: async ({ receipt }, { idempotencyKey }) => {
    await fetch(`${world}/refund?thread=${receipt.thread}`, { headers: { "idempotency-key": idempotencyKey } });
  },
});

export const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "pay",
      durableNode(State, async (_state, { step, configurable }) => {
        const thread = String(configurable?.["thread_id"]);
        // Without the lookup, as a graph does that leaves reconciliation to the command.
        return { paid: (await step.write("pay", { thread }, (context) => pay.run({ thread }, context))).id };
      }),
    )
    .addEdge(START, "pay")
    .addEdge("pay", END),
  { ledger: openLedger(), operations: [pay] },
);
