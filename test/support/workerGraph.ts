// The graph that two workers run on one thread, with everything around its payment that could mistake a lost race for a
// failure: a retryPolicy, an error handler, an undo. What runs and what happens is counted by the world.
import { Annotation, Command, END, getConfig, interrupt, START, StateGraph } from "@langchain/langgraph";
import {
  durableGraph,
  durableNode,
  type Ledger,
  type LookupAnswer,
  type Step,
  type ThreadBudget,
} from "../../src/index.js";
import type { Payment } from "./world.js";

export const SHAPES = ["guarded", "nested", "two writes", "three writes", "asking"] as const;
/**
 * `guarded`: a, pay with a retryPolicy and an error handler that undoes, z. `nested`: a, then pay in a subgraph.
 * `two writes`: pay and ship in one node. `three writes`: a, b and c, each a write. `asking`: a question, then pay.
 */
export type Shape = (typeof SHAPES)[number];

export interface WorkerOptions {
  /** How the world is told of it. @default the thread that runs */
  readonly thread?: string;
  readonly shape: Shape;
  /** @default "look" */
  readonly lookup?: "look" | "cannot-tell";
  readonly settleMs?: number;
  readonly timeoutMs?: number;
  /** A node that throws. */
  readonly fails?: string;
  readonly budget?: ThreadBudget;
}

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

export function workerGraph(ledger: Ledger, worldUrl: string, options: WorkerOptions) {
  const { shape, lookup: looks = "look", settleMs = 300, timeoutMs = 60_000, fails, budget } = options;
  const durableOptions = { ledger, ...(budget === undefined ? {} : { budget }) };
  const ask = (path: string, init: RequestInit = {}) => {
    const thread = options.thread ?? String(getConfig()?.configurable?.["thread_id"]);
    return fetch(`${worldUrl}/${path}?thread=${thread}`, init);
  };
  const lookup = async ({ idempotencyKey }: { idempotencyKey: string }): Promise<LookupAnswer<Payment>> => {
    if (looks === "cannot-tell") return { outcome: "cannot-tell" };
    const found = await ask("lookup", { headers: { "idempotency-key": idempotencyKey } });
    if (found.status === 404) return { outcome: "did-not-happen" };
    return { outcome: "happened", receipt: (await found.json()) as Payment };
  };
  const pay = async (step: Step, name: string): Promise<string> => {
    const payment = await step.write(
      name,
      { amount: 1250 },
      async ({ idempotencyKey, signal }) => {
        const headers = { "idempotency-key": idempotencyKey };
        const answer = await ask("pay", { method: "POST", headers, body: '{"amount":1250}', signal });
        if (!answer.ok) throw Object.assign(new Error(`HTTP ${answer.status}`), { status: answer.status });
        return (await answer.json()) as Payment;
      },
      { lookup, settleMs, timeoutMs },
    );
    return payment.id;
  };
  const plain = (name: string) => async () => {
    await ask(`node-${name}`);
    if (fails === name) throw new Error(`fails in ${name}`);
    return { log: [name] };
  };
  const writing = (...names: string[]) =>
    durableNode(State, async (_state, { step }) => {
      const log: string[] = [];
      for (const name of names) log.push(`${name} ${await pay(step, name)}`);
      await ask(`node-${names.join("-")}`);
      if (names.includes(fails ?? "")) throw new Error(`fails in ${fails}`);
      return { log };
    });
  const builder = new StateGraph(State);
  switch (shape) {
    case "guarded":
      return durableGraph(
        builder
          .addNode("a", plain("a"))
          .addNode("pay", writing("pay"), {
            retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false },
            ends: ["undo", "z"],
            errorHandler: async () => {
              await ask("node-errorHandler");
              return new Command({ goto: "undo" });
            },
          })
          .addNode("undo", plain("undo"))
          .addNode("z", plain("z"))
          .addEdge(START, "a")
          .addEdge("a", "pay")
          .addEdge("pay", "z")
          .addEdge("z", END)
          .addEdge("undo", END),
        durableOptions,
      );
    case "nested": {
      const sub = new StateGraph(State).addNode("pay", writing("pay")).addEdge(START, "pay").compile();
      const nested = builder.addNode("a", plain("a")).addNode("s", sub).addEdge(START, "a").addEdge("a", "s");
      return durableGraph(nested, { ledger });
    }
    case "two writes":
      return durableGraph(builder.addNode("work", writing("pay", "ship")).addEdge(START, "work"), { ledger });
    case "three writes":
      return durableGraph(
        builder
          .addNode("a", writing("a"))
          .addNode("b", writing("b"))
          .addNode("c", writing("c"))
          .addEdge(START, "a")
          .addEdge("a", "b")
          .addEdge("b", "c"),
        { ledger },
      );
    case "asking":
      return durableGraph(
        builder
          .addNode("ask", async () => ({ log: [`answer ${interrupt("pay?")}`] }))
          .addNode("pay", writing("pay"))
          .addNode("after", plain("after"))
          .addEdge(START, "ask")
          .addEdge("ask", "pay")
          .addEdge("pay", "after"),
        { ledger },
      );
  }
}
