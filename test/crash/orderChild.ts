// A process that runs threads of the order graph to their end, all at once, and dies where it is told to. Resumes a
// thread with null, or with its input when nothing of it was stored.
import pg from "pg";
import { openLedger } from "../../src/index.js";
import type { PoolLike } from "../../src/postgres/pool.js";
import { type KillPoint, killingPool } from "../support/pools.js";
import { orderGraph } from "./orderGraph.js";

export type Durability = "sync" | "async";

export interface OrderTask {
  readonly url: string;
  readonly worldUrl: string;
  readonly durability: Durability;
  readonly threads: readonly string[];
  readonly kill?: KillPoint;
}

const { url, worldUrl, durability, threads, kill } = JSON.parse(process.argv[2] ?? "") as OrderTask;
const pool = new pg.Pool({ connectionString: url, max: 10 });
pool.on("error", () => {});
const killing = killingPool(pool, kill);
const statements: string[] = [];
const listening: PoolLike = {
  ...killing,
  query: (query, values) => {
    statements.push(typeof query === "string" ? query : (query.name ?? query.text));
    return killing.query(query, values);
  },
};
const ledger = openLedger({ pool: listening });
const graph = orderGraph(ledger, worldUrl);

async function finish(thread: string): Promise<void> {
  const config = { configurable: { thread_id: thread }, durability };
  // Nothing is known of a thread that was killed before its first checkpoint.
  const stored = (await graph.getState(config)).config.configurable?.["checkpoint_id"] !== undefined;
  const result = await graph
    .invoke(stored ? null : { thread }, config)
    .then(({ thread: _, ...state }) => ({ state }))
    .catch((error: unknown) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify({ thread, statements, ...result })}\n`);
}

await Promise.all(threads.map(finish));
await ledger.close();
await pool.end();
