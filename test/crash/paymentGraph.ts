// The graph that is killed: one node that reads a page, asks a model and pays, and one node after it.

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import { AIMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableModel, durableNode, type Ledger, type LookupAnswer } from "../../src/index.js";
import type { Payment } from "../support/world.js";

/** How the payment is declared: what the pack may do when its outcome is not known. */
export type Declaration = "lookup" | "no lookup" | "idempotent";

/** "It did not happen" counts after this long. */
export const SETTLE_MS = 300;
export const AMOUNT = 1250;

const State = Annotation.Root({
  thread: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

export function paymentGraph(ledger: Ledger, worldUrl: string, declaration: Declaration) {
  const ask = async (path: string, thread: string, init: RequestInit = {}) =>
    fetch(`${worldUrl}/${path}?thread=${thread}${declaration === "idempotent" ? "&deduplicate" : ""}`, init);
  const lookup = async ({ idempotencyKey, signal }: LookupRequest): Promise<LookupAnswer<Payment>> => {
    const found = await ask("lookup", "", { headers: { "idempotency-key": idempotencyKey }, signal });
    if (found.status === 404) return { outcome: "did-not-happen" };
    return { outcome: "happened", receipt: (await found.json()) as Payment };
  };
  const effects = {
    lookup: { lookup, settleMs: SETTLE_MS },
    "no lookup": { settleMs: SETTLE_MS },
    idempotent: { idempotent: true, keyLifetimeMs: 24 * 3_600_000, settleMs: SETTLE_MS },
  };
  const builder = new StateGraph(State)
    .addNode(
      "work",
      durableNode(State, async ({ thread }, { step }) => {
        const page = await step.read("page", { thread }, async ({ signal }) =>
          textOf(await ask("page", thread, { signal })),
        );
        const model = durableModel(new LoopbackModel((signal) => ask("model", thread, { method: "POST", ...signal })));
        const summary = await model.invoke(`Summarise: ${page}`);
        const receipt = await step.write(
          "pay",
          { amount: AMOUNT, to: "acme" },
          async ({ idempotencyKey, signal }) => {
            const headers = { "idempotency-key": idempotencyKey, "content-type": "application/json" };
            const body = JSON.stringify({ amount: AMOUNT });
            return (await (await ask("pay", thread, { method: "POST", headers, body, signal })).json()) as Payment;
          },
          effects[declaration],
        );
        return { log: [page, summary.text, receipt.id] };
      }),
    )
    .addNode("after", async () => ({ log: ["after"] }))
    .addEdge(START, "work")
    .addEdge("work", "after")
    .addEdge("after", END);
  return durableGraph(builder, { ledger });
}

interface LookupRequest {
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

async function textOf(response: Response): Promise<string> {
  return ((await response.json()) as { text: string }).text;
}

/** A chat model on loopback. */
class LoopbackModel extends BaseChatModel {
  constructor(readonly ask: (options: { signal?: AbortSignal }) => Promise<Response>) {
    super({});
  }

  override _llmType(): string {
    return "loopback";
  }

  override async _generate(_messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const text = await textOf(await this.ask(options.signal === undefined ? {} : { signal: options.signal }));
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}
