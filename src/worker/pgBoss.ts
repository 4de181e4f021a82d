// The waker of many machines: due threads are jobs of pg-boss, one active job a thread, and every worker that shares the
// queue consumes them. Whether a thread may run is still the ledger's word: a job only brings a worker to it.
import { InvalidOptionError } from "../core/errors.js";
import { MAX_TIMER_MS, positiveMs } from "../core/lease.js";
import { knownOptions } from "../core/options.js";
import type { DueThread } from "../postgres/due.js";
import { quoteSchema } from "../postgres/pool.js";
import type { WakeOutcome, Waker, WakerHost } from "./waker.js";

/** What of pg-boss 10 is needed. */
export interface BossLike {
  start(): Promise<unknown>;
  stop(options?: { graceful?: boolean; wait?: boolean; timeout?: number }): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  createQueue(name: string, options?: { name: string; policy?: "stately" }): Promise<unknown>;
  send(name: string, data: object, options: object): Promise<string | null>;
  cancel(name: string, id: string): Promise<unknown>;
  work<Data>(
    name: string,
    options: { pollingIntervalSeconds: number; batchSize: number },
    handler: (jobs: { data: Data }[]) => Promise<unknown>,
  ): Promise<string>;
  offWork(name: string): Promise<unknown>;
  getDb(): { executeSql(text: string, values: unknown[]): Promise<{ rows: unknown[] }> };
}

export interface PgBossOptions {
  /** A pg-boss 10 of yours, not started yet. It may live in another database than the ledger. */
  readonly boss: BossLike;
  /** Schema of its tables. @default "pgboss" */
  readonly schema?: string;
  /** All workers that share a queue must have been given the same graphs. @default "longhaul" */
  readonly queue?: string;
  /** How often a worker asks for a job. Milliseconds, 500 at least. @default 500 */
  readonly pollMs?: number;
}

interface Job {
  readonly threadId: string;
  readonly graph?: string;
}

/** A job waits for a free worker; after this it is ordered again, which changes nothing while it is queued. */
const CLAIM_MS = 15_000;
/** pg-boss would give a job up that takes longer; the thread's lease does not depend on it. Its limit is a day. */
const EXPIRE_HOURS = 23;
/** The end of the run that has the thread brings its wake back sooner. */
const BUSY_MS = 15_000;
/** Its runs have ended by then; this is for pg-boss to write that down. */
const CLOSE_MS = 5_000;

/**
 * Has due threads run by the workers that share a pg-boss queue, one active job a thread. A job whose worker died is
 * cleared when the ledger finds the thread's run dead, and ordered again; pg-boss itself would wait for its time to be over.
 *
 * @throws InvalidOptionError for options that cannot be.
 * @example
 * startWorker({ ledger, graphs: graph, waker: pgBossWaker({ boss: new PgBoss(url) }) });
 */
export function pgBossWaker(options: PgBossOptions): Waker {
  const { boss, queue = "longhaul", pollMs = 500 } = options;
  knownOptions("pgBossWaker", options, ["boss", "schema", "queue", "pollMs"]);
  const schema = quoteSchema(options.schema ?? "pgboss");
  if (typeof boss?.send !== "function" || typeof boss.getDb !== "function") {
    throw new InvalidOptionError("Expected `boss` to be a PgBoss of pg-boss 10.");
  }
  if (!/^[\w-]{1,100}$/.test(queue)) throw new InvalidOptionError("Expected `queue` to be letters, digits, _ and -.");
  if (positiveMs("pollMs", pollMs, MAX_TIMER_MS) < 500) {
    throw new InvalidOptionError("Expected `pollMs` to be 500 at least: pg-boss asks no more often.");
  }
  const active = `select id from ${schema}.job where name = $1 and singleton_key = $2 and state = 'active'`;

  // The ledger knows that nobody runs the thread, so what pg-boss calls active is a worker that died, or one that is just
  // done. While it stands, the queue could give out no other job of the thread, nor any job behind it.
  const clearStale = async (threadId: string) => {
    const { rows } = await boss.getDb().executeSql(active, [queue, threadId]);
    for (const { id } of rows as { id: string }[]) await boss.cancel(queue, id);
  };
  return {
    name: "pg-boss",
    claimMs: CLAIM_MS,
    elsewhere: false,
    start: async (host: WakerHost) => {
      boss.on("error", (error) => host.onError(error));
      await boss.start();
      await boss.createQueue(queue, { name: queue, policy: "stately" });
      const polling = { pollingIntervalSeconds: pollMs / 1000, batchSize: 1 };
      const consume = async (jobs: { data: Job }[]) => {
        for (const { data } of jobs) await host.run({ threadId: data.threadId, graph: data.graph });
      };
      for (let i = 0; i < host.concurrency; i++) await boss.work<Job>(queue, polling, consume);
    },
    wake: async ({ threadId, graph, held }: DueThread): Promise<WakeOutcome> => {
      if (held) return { to: "busy", againInMs: BUSY_MS };
      await clearStale(threadId);
      const job: Job = { threadId, ...(graph === undefined ? {} : { graph }) };
      // Null: a job of the thread is queued already.
      await boss.send(queue, job, { singletonKey: threadId, retryLimit: 0, expireInHours: EXPIRE_HOURS });
      return { to: "queued" };
    },
    stop: async () => {
      await boss.offWork(queue);
    },
    close: async () => {
      await boss.stop({ graceful: true, timeout: CLOSE_MS });
    },
  };
}
