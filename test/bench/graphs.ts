// The graphs of P4 and P7: one node in a loop, so that every superstep does one thing. Stock has LangGraph's PostgresSaver
// and no ledger; ours has a recorded step in the node and LedgerSaver beneath.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { durableGraph, durableModel, durableNode, openLedger } from "../../src/index.js";
import { BenchModel } from "./benchModel.js";
import type { Server } from "./server.js";

export const State = Annotation.Root({
  i: Annotation<number>,
  n: Annotation<number>,
  last: Annotation<object | string>,
});
export type LoopState = typeof State.State;
type LoopNode = Parameters<typeof loopOf>[0];

export interface Loop {
  /** Runs `steps` supersteps on a new thread. */
  run(threadId: string, steps: number): Promise<void>;
}

export interface Loops {
  readonly stock: Loop;
  readonly stockModel: Loop;
  readonly write: Loop;
  readonly read: Loop;
  readonly model: Loop;
  close(): Promise<void>;
}

const effect = async (i: number): Promise<object> => ({ i, ok: true });
const ask = async (model: BenchModel, { i }: LoopState) => ({
  i: i + 1,
  last: (await model.invoke(`Question ${i}`)).text,
});

const write = durableNode(State, async ({ i }, { step }) => ({
  i: i + 1,
  last: await step.write("send", { i }, () => effect(i)),
}));
const read = durableNode(State, async ({ i }, { step }) => ({
  i: i + 1,
  last: await step.read("fetch", { i }, () => effect(i)),
}));

/** As many connections for each side as threads that run at once. */
export async function openLoops(server: Server, connections: number): Promise<Loops> {
  const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: connections });
  // Its connections may still be closing when the database is dropped.
  pool.on("error", () => {});
  const saver = new PostgresSaver(pool);
  await saver.setup();
  const ledger = openLedger({ url: await server.createDatabase(), maxConnections: connections });
  const stock = (node: LoopNode) => loop(loopOf(node).compile({ checkpointer: saver }));
  const ours = (node: LoopNode) => loop(durableGraph(loopOf(node), { ledger }));
  const plain = new BenchModel({});
  const recorded = durableModel(plain);
  return {
    stock: stock(async ({ i }) => ({ i: i + 1, last: await effect(i) })),
    stockModel: stock((state) => ask(plain, state)),
    write: ours(write),
    read: ours(read),
    model: ours((state) => ask(recorded, state)),
    close: async () => {
      await ledger.close();
      await pool.end();
    },
  };
}

/** A node that runs `n` times. */
export function loopOf(node: (state: LoopState, runtime: Parameters<typeof write>[1]) => Promise<Partial<LoopState>>) {
  return new StateGraph(State)
    .addNode("step", node)
    .addEdge(START, "step")
    .addConditionalEdges("step", ({ i, n }) => (i < n ? "step" : END), ["step", END]);
}

function loop(graph: { invoke(input: Partial<LoopState>, options: object): Promise<LoopState> }): Loop {
  return {
    run: async (threadId, steps) => {
      const options = { configurable: { thread_id: threadId }, durability: "sync", recursionLimit: steps + 10 };
      const { i } = await graph.invoke({ i: 0, n: steps }, options);
      if (i !== steps) throw new Error(`The loop on thread ${threadId} ended after ${i} of ${steps} supersteps.`);
    },
  };
}
