// One node, tool or function under test, without a graph around it: it is given one, durable, of a single node.
import { randomUUID } from "node:crypto";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { knownOptions } from "../core/options.js";
import { durableGraph } from "../langgraph/durableGraph.js";
import type { Ledger } from "../langgraph/ledger.js";

export interface WithLedgerOptions {
  /** Say it to run the same code again: after it has thrown it goes on where it was, and recorded steps are replayed. @default a new one */
  readonly threadId?: string;
}

/** Of a function that paused: what it asks. */
export class PausedError extends Error {
  override readonly name = "PausedError";

  constructor(readonly questions: readonly unknown[]) {
    super(`The code under test has paused, and asks: ${JSON.stringify(questions)}`);
  }
}

/**
 * Runs a function as a node of a durable graph, and gives what it returns. In it `durable(runtime)`, durable tools and models,
 * operations and `requestApproval(runtime, …)` work as they do in your graph.
 *
 * @throws what the function throws; PausedError when it pauses for a person.
 * @example
 * const page = await withLedger(ledger, (runtime) => fetchNode({ url }, runtime));
 */
export async function withLedger<T>(
  ledger: Ledger,
  fn: (runtime: LangGraphRunnableConfig) => Promise<T>,
  options: WithLedgerOptions = {},
): Promise<T> {
  knownOptions("withLedger", options, ["threadId"]);
  let result: { readonly value: T } | undefined;
  const builder = new StateGraph(Annotation.Root({ runs: Annotation<number> }))
    .addNode("test", async ({ runs = 0 }, runtime) => {
      result = { value: await fn(runtime) };
      return { runs: runs + 1 };
    })
    .addEdge(START, "test")
    .addEdge("test", END);
  const graph = durableGraph(builder, { ledger, name: "withLedger" });
  const config = { configurable: { thread_id: options.threadId ?? randomUUID() } };
  const { next } = await graph.getState(config);
  const state: unknown = await graph.invoke(next.length > 0 ? null : {}, config);
  if (result !== undefined) return (result as { readonly value: T }).value;
  const asked = (state as { __interrupt__?: readonly { readonly value: unknown }[] }).__interrupt__ ?? [];
  throw new PausedError(asked.map(({ value }) => value));
}
