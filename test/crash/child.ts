// A process that runs threads of the payment graph, and dies where it is told to. Resumes a thread with null, or with
// its input when nothing of it was stored.
import pg from "pg";
import { openLedger } from "../../src/index.js";
import { type KillPoint, killingPool } from "../support/pools.js";
import { type Declaration, paymentGraph } from "./paymentGraph.js";

export interface ChildTask {
  readonly url: string;
  readonly worldUrl: string;
  readonly threads: readonly { readonly thread: string; readonly declaration: Declaration }[];
  readonly kill?: KillPoint;
}

const importsMs = performance.now();
const task = JSON.parse(process.argv[2] ?? "") as ChildTask;
const pool = new pg.Pool({ connectionString: task.url, max: 10 });
pool.on("error", () => {});
const ledger = openLedger({ pool: killingPool(pool, task.kill) });

for (const { thread, declaration } of task.threads) {
  const graph = paymentGraph(ledger, task.worldUrl, declaration);
  const config = { configurable: { thread_id: thread } };
  const startedAt = performance.now();
  // Nothing is known of a thread that was killed before its first checkpoint.
  const stored = (await graph.getState(config)).config.configurable?.["checkpoint_id"] !== undefined;
  const result = await graph
    .invoke(stored ? null : { thread }, config)
    .catch((error: unknown) => ({ error: String(error) }));
  const ms = performance.now() - startedAt;
  process.stdout.write(`${JSON.stringify({ thread, ms, importsMs, stored, ...result })}\n`);
}
await ledger.close();
await pool.end();
