// What the tests of the rules share: graphs of one node, and the ledger's rows.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, type Ledger, type NodeRuntime, type Step } from "../../src/index.js";
import type { TestDatabase } from "../support/database.js";

export const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

export const thread = (thread_id: string) => ({ configurable: { thread_id } });

export const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** LangGraph tries a node three times, without waiting. */
export const RETRY = { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false };

/** A graph of one durable node. */
export function oneNode(
  ledger: Ledger,
  work: (step: Step, runtime: NodeRuntime) => Promise<unknown>,
  options: { retryPolicy?: typeof RETRY; timeout?: number } = {},
) {
  const builder = new StateGraph(State)
    .addNode(
      "node",
      durableNode(State, async (_state, runtime) => ({ log: [String(await work(runtime.step, runtime))] })),
      options,
    )
    .addEdge(START, "node")
    .addEdge("node", END);
  return durableGraph(builder, { ledger });
}

export interface StepRow {
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly key: string;
  readonly doubt: boolean;
}

export function stepsOf(db: TestDatabase, threadId: string): Promise<StepRow[]> {
  return db.sql<StepRow>(
    `select name, state, attempt, encode(key, 'hex') as key, doubt_since is not null as doubt
     from longhaul.steps where thread_id = $1 order by seq`,
    [threadId],
  );
}

/** The states that the steps of a thread went through, in order. */
export async function historyOf(db: TestDatabase, threadId: string): Promise<string[]> {
  const rows = await db.sql<{ to_state: string }>(
    `select e.to_state from longhaul.step_events e join longhaul.steps s using (key)
     where s.thread_id = $1 order by s.seq, e.n`,
    [threadId],
  );
  return rows.map((row) => row.to_state);
}

/** The answer was lost on the way: the request may have arrived. */
export function reset(): Error {
  return Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
}

export function status(code: number): Error {
  return Object.assign(new Error(`HTTP ${code}`), { status: code });
}

/** A promise that the test resolves. (Promise.withResolvers needs Node 22.) */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
