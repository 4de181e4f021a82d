// An entrypoint whose tasks pay, in a process that may be killed.
import { entrypoint, task } from "@langchain/langgraph";
import { durable, durableGraph, openLedger } from "../../src/index.js";
import type { Payment } from "../support/world.js";

const [url = "", worldUrl = "", again] = process.argv.slice(2);
const pay = task("pay", async (amount: number) =>
  durable().step.write(
    "pay",
    { amount },
    async ({ idempotencyKey }) => {
      const request = {
        method: "POST",
        headers: { "idempotency-key": idempotencyKey },
        body: JSON.stringify({ amount }),
      };
      return ((await (await fetch(`${worldUrl}/pay`, request)).json()) as Payment).id;
    },
    {
      settleMs: 1,
      lookup: async ({ idempotencyKey }) => {
        const answer = await fetch(`${worldUrl}/lookup`, { headers: { "idempotency-key": idempotencyKey } });
        if (answer.status === 404) return { outcome: "did-not-happen" };
        return { outcome: "happened", receipt: ((await answer.json()) as Payment).id };
      },
    },
  ),
);
const workflow = durableGraph(
  entrypoint("payments", async (amounts: number[]) => {
    const paid: string[] = [];
    for (const amount of amounts) paid.push(await pay(amount));
    return paid;
  }),
  { ledger: openLedger({ url, leaseMs: 2000 }) },
);
const input = again === undefined ? [1, 2, 3] : (null as never);
const result = await workflow.invoke(input, { configurable: { thread_id: "killed" } });
console.log(JSON.stringify({ result }));
process.exit(0);
