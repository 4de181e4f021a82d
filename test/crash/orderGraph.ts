// A graph that writes much: a read and a model call, three orders in parallel by Send, and twice round a loop of a
// subgraph and a node. Every request names what it is for, so that the world can tell which of them came twice.
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { Annotation, END, Send, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableModel, durableNode, type Ledger, type LookupAnswer, type Step } from "../../src/index.js";
import type { Payment } from "../support/world.js";

/** "It did not happen" counts after this long. */
const SETTLE_MS = 300;
const TURNS = 2;

/** What is paid for in one run; the amount says for what. */
export const AMOUNTS: readonly number[] = [101, 102, 103, 200, 201, 300, 301, 400, 401];

const State = Annotation.Root({
  thread: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  item: Annotation<number>,
  turn: Annotation<number>({ reducer: (_, b) => b, default: () => 0 }),
  shipped: Annotation<string[]>({ reducer: (_, b) => b, default: () => [] }),
});
const Parcel = Annotation.Root({
  thread: Annotation<string>,
  turn: Annotation<number>,
  shipped: Annotation<string[]>({ reducer: (_, b) => b, default: () => [] }),
});

export function orderGraph(ledger: Ledger, worldUrl: string) {
  const outside = new Outside(worldUrl);

  const parcel = new StateGraph(Parcel)
    .addNode(
      "pack",
      durableNode(Parcel, async ({ thread, turn, shipped }, { step }) => {
        const packed = await outside.pay(step, thread, 200 + turn);
        return { shipped: [...shipped, packed] };
      }),
    )
    .addNode(
      "label",
      durableNode(Parcel, async ({ thread, turn, shipped }, { step }) => {
        const address = await outside.read(step, thread, `address-${turn}`);
        const label = await outside.pay(step, thread, 300 + turn);
        return { shipped: [...shipped, address, label] };
      }),
    )
    .addEdge(START, "pack")
    .addEdge("pack", "label")
    .addEdge("label", END)
    .compile();

  const builder = new StateGraph(State)
    .addNode(
      "plan",
      durableNode(State, async ({ thread }, { step }) => {
        const catalogue = await outside.read(step, thread, "catalogue");
        return { log: [catalogue, await outside.ask(thread, "plan")] };
      }),
    )
    .addNode(
      "order",
      durableNode(State, async ({ thread, item }, { step }) => {
        const price = await outside.read(step, thread, `price-${item}`);
        return { log: [price, await outside.pay(step, thread, 100 + item)] };
      }),
    )
    .addNode("ship", parcel)
    .addNode(
      "check",
      durableNode(State, async ({ thread, turn, shipped }, { step }) => {
        const verdict = await outside.ask(thread, `check-${turn}`);
        const notice = await outside.pay(step, thread, 400 + turn);
        return { log: [...shipped, verdict, notice], turn: turn + 1, shipped: [] };
      }),
    )
    .addEdge(START, "plan")
    .addConditionalEdges("plan", ({ thread }) => [1, 2, 3].map((item) => new Send("order", { thread, item })), [
      "order",
    ])
    .addEdge("order", "ship")
    .addEdge("ship", "check")
    .addConditionalEdges("check", ({ turn }) => (turn < TURNS ? "ship" : END), ["ship", END]);
  return durableGraph(builder, { ledger });
}

/** The world outside, as the graph's steps call it. */
class Outside {
  constructor(readonly url: string) {}

  read(step: Step, thread: string, what: string): Promise<string> {
    return step.read(what, {}, ({ signal }) => this.#request(what, thread, { signal }));
  }

  async ask(thread: string, what: string): Promise<string> {
    const model = new LoopbackModel((signal) => this.#request(what, thread, signal));
    return (await durableModel(model).invoke(`Say ${what}.`)).text;
  }

  async pay(step: Step, thread: string, amount: number): Promise<string> {
    const payment = await step.write(
      "pay",
      { amount },
      async ({ idempotencyKey, signal }) => {
        const headers = { "idempotency-key": idempotencyKey, "content-type": "application/json" };
        const body = JSON.stringify({ amount });
        const response = await fetch(`${this.url}/pay?thread=${thread}`, { method: "POST", headers, body, signal });
        return (await response.json()) as Payment;
      },
      { lookup: (question) => this.#lookup(question), settleMs: SETTLE_MS },
    );
    return `paid ${payment.amount}`;
  }

  async #lookup({ idempotencyKey, signal }: { idempotencyKey: string; signal: AbortSignal }) {
    const headers = { "idempotency-key": idempotencyKey };
    const found = await fetch(`${this.url}/lookup`, { headers, signal });
    const answer: LookupAnswer<Payment> =
      found.status === 404
        ? { outcome: "did-not-happen" }
        : { outcome: "happened", receipt: (await found.json()) as Payment };
    return answer;
  }

  /** The answer is the same however often it is asked for: only the world's count tells. */
  async #request(what: string, thread: string, init: RequestInit): Promise<string> {
    const response = await fetch(`${this.url}/${what}?thread=${thread}`, init);
    await response.json();
    return `<${what}>`;
  }
}

class LoopbackModel extends BaseChatModel {
  constructor(readonly ask: (init: RequestInit) => Promise<string>) {
    super({});
  }

  override _llmType(): string {
    return "loopback";
  }

  override async _generate(_messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const text = await this.ask(options.signal === undefined ? {} : { signal: options.signal });
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}
