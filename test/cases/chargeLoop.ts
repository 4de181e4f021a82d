// Three equal charges in one run: in one node, and over the turns of a loop.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, type Ledger, type Step } from "../../src/index.js";
import type { Payment } from "../support/world.js";

export const SHAPES = ["in-one-node", "over-loop-turns"] as const;
export type Shape = (typeof SHAPES)[number];

const State = Annotation.Root({
  keys: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

export function chargeLoop(ledger: Ledger, worldUrl: string, shape: Shape) {
  const charge = async (step: Step): Promise<string> => {
    const payment = await step.write("charge", { customer: "acme", amount: 1000 }, async ({ idempotencyKey }) => {
      const headers = { "idempotency-key": idempotencyKey };
      const answer = await fetch(`${worldUrl}/pay?thread=${shape}`, {
        method: "POST",
        headers,
        body: '{"amount":1000}',
      });
      return (await answer.json()) as Payment;
    });
    return payment.key;
  };
  const times = shape === "in-one-node" ? 3 : 1;
  const builder = new StateGraph(State)
    .addNode(
      "charge",
      durableNode(State, async (_state, { step }) => {
        const keys: string[] = [];
        for (let i = 0; i < times; i++) keys.push(await charge(step));
        return { keys };
      }),
    )
    .addEdge(START, "charge")
    .addConditionalEdges("charge", ({ keys }) => (keys.length < 3 ? "charge" : END), ["charge", END]);
  return durableGraph(builder, { ledger });
}
