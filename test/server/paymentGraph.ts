// A graph that asks before it pays.
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import {
  type ApprovalPolicy,
  approvalNode,
  type DurableOptions,
  durable,
  durableGraph,
  type Ledger,
} from "../../src/index.js";

const Payment = Annotation.Root({ amount: Annotation<number>, log: Annotation<string[]> });

/** Asks, then pays what was allowed. */
export function payment(
  ledger: Ledger,
  policy: ApprovalPolicy & { action?: string; description?: string } = {},
  options: Pick<DurableOptions, "resumeAs"> = {},
) {
  const { action = "pay", description, ...rest } = policy;
  const paid: number[] = [];
  const builder = new StateGraph(Payment)
    .addNode(
      "approve",
      approvalNode({
        ...rest,
        request: ({ amount }: typeof Payment.State) => ({
          action,
          args: { amount, to: "ACC-1", currency: "EUR" },
          ...(description === undefined ? {} : { description }),
        }),
        decided: ({ allowed, args, by }) =>
          new Command({ update: { amount: args.amount, log: [by] }, goto: allowed ? "pay" : END }),
      }),
      { ends: ["pay", END] },
    )
    .addNode("pay", async ({ amount, log }, runtime) => {
      await durable(runtime).step.write("pay", { amount }, async () => {
        paid.push(amount);
        return "paid";
      });
      return { log: [...log, `paid ${amount}`] };
    })
    .addEdge(START, "approve")
    .addEdge("pay", END);
  return { graph: durableGraph(builder, { ...options, ledger, budget: { usd: 5, tokens: 200_000 } }), paid };
}
