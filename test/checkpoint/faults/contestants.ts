// LangGraph's own saver and ours, each on a database of its own, with every statement that reaches the database counted.
import { randomUUID } from "node:crypto";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { LedgerSaver } from "../../../src/checkpoint/ledgerSaver.js";
import type { LonghaulError } from "../../../src/core/errors.js";
import { PooledDatabase } from "../../../src/postgres/pool.js";
import { acquireRun } from "../../../src/postgres/runs.js";
import { openDatabase, SCHEMA } from "../openDatabase.js";

export type Kind = "stock" | "ours";

export interface Contestant {
  readonly kind: Kind;
  readonly url: string;
  readonly saver: BaseCheckpointSaver;
  /** How many statements reached the database while `work` ran. */
  counted(work: () => Promise<unknown>): Promise<number>;
  /** The saver as a worker has it that takes the thread from whoever had it. */
  worker(threadId: string): Promise<BaseCheckpointSaver>;
  /** The bytes of all values and pending writes of a thread, before PostgreSQL compresses them. */
  storedBytes(threadId: string): Promise<number>;
  close(): Promise<void>;
}

type CreateDatabase = () => Promise<string>;

export async function contestant(kind: Kind, createDatabase: CreateDatabase): Promise<Contestant> {
  const url = await createDatabase();
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  pool.on("error", () => {});
  let sent = 0;
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      sent += 1;
      return query(...args);
    }) as typeof client.query;
  });
  const { saver, worker } = kind === "stock" ? await openStock(pool) : await openOurs(pool, url);
  return {
    kind,
    url,
    saver,
    worker,
    counted: async (work) => {
      const before = sent;
      await work();
      return sent - before;
    },
    storedBytes: async (threadId) => {
      const { rows } = await pool.query(kind === "stock" ? BYTES : `${BYTES} ${ELEMENT_BYTES}`, [threadId]);
      return rows.reduce((sum, row) => sum + Number(row.bytes), 0);
    },
    close: () => pool.end(),
  };
}

const BYTES = ["checkpoint_blobs", "checkpoint_writes"]
  .map((table) => `select coalesce(sum(octet_length(blob)), 0) as bytes from "${SCHEMA}".${table} where thread_id = $1`)
  .join(" union all ");
const ELEMENT_BYTES = `union all select coalesce(sum(octet_length(body)), 0) from "${SCHEMA}".elements where thread_id = $1`;

async function openStock(pool: pg.Pool) {
  const saver = new PostgresSaver(pool, undefined, { schema: SCHEMA });
  await saver.setup();
  return { saver, worker: async () => saver };
}

async function openOurs(pool: pg.Pool, url: string) {
  const made = await openDatabase(url);
  await made.pool.end();
  const database = new PooledDatabase(pool, SCHEMA);
  const saver = new LedgerSaver(async () => database, SCHEMA);
  const worker = async (threadId: string) => {
    // As if whoever had the thread had been paused for longer than its lease.
    await pool.query(`update ${database.schema}.threads set lease_until = '-infinity' where thread_id = $1`, [
      threadId,
    ]);
    const answer = await acquireRun(database, threadId, randomUUID(), 60_000);
    if (!("ticket" in answer)) throw new Error(`The thread ${threadId} is busy.`);
    const run = {
      ticket: answer.ticket,
      lost: undefined as LonghaulError | undefined,
      lose: (error: LonghaulError) => {
        run.lost ??= error;
      },
    };
    return saver.forRun(run);
  };
  return { saver, worker };
}
