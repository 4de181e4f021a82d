// A worker in a process of its own: one run of a worker graph on one thread. It prints what came of it.
import { Command } from "@langchain/langgraph";
import pg from "pg";
import { drain, drainReason, openLedger } from "../../src/index.js";
import type { PoolLike } from "../../src/postgres/pool.js";
import { START_LOCK } from "./locks.js";
import { listeningPool } from "./pools.js";
import { type WorkerOptions, workerGraph } from "./workerGraph.js";

export interface WorkerTask extends WorkerOptions {
  readonly thread: string;
  readonly url: string;
  readonly worldUrl: string;
  /** `resume` answers the thread's question; without it the thread goes on with null. */
  readonly input?: "new" | "resume";
  readonly resume?: string;
  readonly durability?: "sync" | "async";
  readonly leaseMs?: number;
  /** This process's clock is wrong by so much. */
  readonly clockMs?: number;
  /** Checkpoints of the root graph are sent this late. */
  readonly slowRootPutMs?: number;
  /** Stops itself (SIGSTOP) right after the answer to the first statement of this name. */
  readonly stopAfter?: string;
  /** On SIGTERM it lets its runs come to a step's end. */
  readonly drains?: boolean;
  /** Waits for the test to give the start. */
  readonly together?: boolean;
}

const task = JSON.parse(process.argv[2] ?? "") as WorkerTask;
if (task.clockMs !== undefined) {
  const real = Date.now.bind(Date);
  const shift = task.clockMs;
  Date.now = () => real() + shift;
}
const pool = new pg.Pool({ connectionString: task.url, max: 6 });
pool.on("error", () => {});
let stopped = false;
const listening = listeningPool(slowedPool(pool, task.slowRootPutMs), async (name, send) => {
  const answer = await send();
  if (name === task.stopAfter && !stopped) {
    stopped = true;
    process.kill(process.pid, "SIGSTOP");
  }
  return answer;
});

/** Holds back the checkpoints of the root graph, whose namespace is the empty one. */
function slowedPool(fast: pg.Pool, ms: number | undefined): PoolLike {
  const isRootPut = (query: string | pg.QueryConfig) =>
    typeof query === "object" && query.name === "lh_run_put" && query.values?.[1] === "";
  return {
    query: async (query, values) => {
      if (ms !== undefined && isRootPut(query)) await new Promise((resolve) => setTimeout(resolve, ms));
      return typeof query === "string" ? fast.query(query, values) : fast.query(query);
    },
    connect: () => fast.connect(),
    end: () => fast.end(),
  };
}

const ledger = openLedger({ pool: listening, ...(task.leaseMs === undefined ? {} : { leaseMs: task.leaseMs }) });
if (task.drains === true) {
  process.once("SIGTERM", () => {
    void drain(ledger);
    void fetch(`${task.worldUrl}/draining?thread=${task.thread}`);
  });
}
const graph = workerGraph(ledger, task.worldUrl, task);
const input = { new: { log: [] }, resume: new Command({ resume: task.resume ?? "yes" }), none: null }[
  task.input ?? "none"
];
if (task.together === true) {
  await graph.getState({ configurable: { thread_id: task.thread } });
  const client = new pg.Client({ connectionString: task.url });
  await client.connect();
  process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
  await client.query("select pg_advisory_lock_shared($1)", [START_LOCK]);
  await client.end();
}
const config = {
  configurable: { thread_id: task.thread },
  ...(task.durability === undefined ? {} : { durability: task.durability }),
};
const startedAt = performance.now();
const result = await graph
  // Each shape has node names of its own, which the type of a Command would have to name.
  .invoke(input as never, config)
  .catch((error: unknown) => ({ error: String(error), drain: drainReason(error) }));
process.stdout.write(`${JSON.stringify({ ms: performance.now() - startedAt, ...result })}\n`);
await ledger.close();
await pool.end();
