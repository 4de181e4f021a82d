// Payments go through and their answers are lost: nobody here can know. Where there is a `lookup`, the provider is asked.
// Where there is none the thread waits for a person, and nothing is sent again on a guess.
// Run it: npx tsx examples/03-unknown-outcome.ts
import { Annotation, isInterrupted, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger, operation, settle } from "langgraph-longhaul";

const State = Annotation.Root({ amount: Annotation<number>, receipt: Annotation<string> });
const ledger = openLedger();
const bank = new Map<string, number>();
const taken = () => [...bank.values()].join(" and ");

/** Takes the money, and then the connection breaks. */
async function pay(amount: number, idempotencyKey: string): Promise<{ id: string }> {
  bank.set(idempotencyKey, (bank.get(idempotencyKey) ?? 0) + amount);
  throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
}

function payments(
  name: string,
  lookup?: Parameters<typeof operation<{ amount: number }, { id: string }>>[0]["lookup"],
) {
  const operationOf = operation<{ amount: number }, { id: string }>({
    name,
    version: "1.0.0",
    effect: "write",
    run: ({ amount }, { idempotencyKey }) => pay(amount, idempotencyKey),
    ...(lookup && { lookup }),
  });
  const node = durableNode(State, async ({ amount }, { step }) => ({
    receipt: (await step.run(operationOf, { amount })).id,
  }));
  return durableGraph(new StateGraph(State).addNode("pay", node).addEdge(START, "pay"), { ledger });
}

const asked = payments("pay-looked-up", async ({ idempotencyKey }) =>
  bank.has(idempotencyKey)
    ? { outcome: "happened", receipt: { id: "found by its key" } }
    : { outcome: "did-not-happen" },
);
const first = await asked.invoke({ amount: 40 }, { configurable: { thread_id: `asked-${process.pid}` } });
console.log(`with a lookup:    ${first.receipt}; the bank took ${taken()}`);

const unasked = payments("pay-blind");
const config = { configurable: { thread_id: `unasked-${process.pid}` } };
const waiting = await unasked.invoke({ amount: 60 }, config);
if (!isInterrupted<{ kind: string; idempotencyKey: string }>(waiting)) throw new Error("it should wait");
const { kind, idempotencyKey } = waiting["__interrupt__"][0]?.value ?? { kind: "", idempotencyKey: "" };
console.log(`without a lookup: ${kind}; the bank took ${taken()}`);
// Somebody has looked at the bank's statement. The same from a terminal: longhaul reconcile settle <key> --happened '{…}'
await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: { id: "found by Ann" } });
const second = await unasked.invoke(null, config);
console.log(`settled:          ${second.receipt}; the bank took ${taken()}`);
await ledger.close();
