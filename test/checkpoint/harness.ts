// What these tests share: a world of two savers on one new database, and runs that are taken and lost by hand.
import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import type { RunBinding } from "../../src/checkpoint/runBinding.js";
import type { LonghaulError } from "../../src/core/errors.js";
import type { RunTicket } from "../../src/core/ledger.js";
import { PooledDatabase, type PoolLike } from "../../src/postgres/pool.js";
import { acquireRun } from "../../src/postgres/runs.js";
import { createDatabase } from "../support/database.js";
import { openDatabase, SCHEMA } from "./openDatabase.js";

/** No test waits for a lease to end: they end one, or move the ledger's clock. */
export const LEASE_MS = 60_000;

export interface World {
  readonly url: string;
  readonly database: PooledDatabase;
  readonly saver: LedgerSaver;
  readonly stock: PostgresSaver;
  /** Every statement sent through the saver, by name. */
  readonly sent: string[];
  close(): Promise<void>;
}

/** A ledger's saver and LangGraph's own on the same tables of a new database. */
export async function createWorld(): Promise<World> {
  const url = await createDatabase({ empty: true });
  const database = await openDatabase(url);
  const sent: string[] = [];
  const listening = new PooledDatabase(listenedPool(database.pool, sent), SCHEMA);
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  return {
    url,
    database,
    saver: new LedgerSaver(async () => listening, SCHEMA),
    stock: new PostgresSaver(pool, undefined, { schema: SCHEMA }),
    sent,
    close: async () => {
      await pool.end();
      await database.pool.end();
    },
  };
}

function listenedPool(pool: PoolLike, sent: string[]): PoolLike {
  return {
    query: (query, values) => {
      sent.push(typeof query === "string" ? query : (query.name ?? query.text));
      return pool.query(query, values);
    },
    connect: () => pool.connect(),
    end: () => pool.end(),
  };
}

/** A run as a durable graph would hold it, without the renewals. */
export class TestRun implements RunBinding {
  lost: LonghaulError | undefined;
  losses = 0;
  constructor(readonly ticket: RunTicket) {}
  lose(error: LonghaulError): void {
    this.losses += 1;
    this.lost ??= error;
  }
}

export async function startRun(world: World, threadId: string): Promise<TestRun> {
  const answer = await acquireRun(world.database, threadId, randomUUID(), LEASE_MS);
  if (!("ticket" in answer)) throw new Error(`The thread ${threadId} is busy.`);
  return new TestRun(answer.ticket);
}

/** As if the run had been paused for longer than its lease. */
export async function endLease(world: World, threadId: string): Promise<void> {
  await world.database.pool.query({
    text: `update ${world.database.schema}.threads set lease_until = '-infinity' where thread_id = $1`,
    values: [threadId],
  });
}

export function thread(threadId: string, more: Record<string, unknown> = {}): RunnableConfig {
  return { configurable: { thread_id: threadId, ...more } };
}

/** Lends a saver to a graph and all its subgraphs, as a durable graph does. */
export function lend(saver: LedgerSaver, config: RunnableConfig): RunnableConfig {
  return { ...config, configurable: { ...config.configurable, __pregel_checkpointer: saver } };
}

export async function toArray<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** A promise that the test resolves. (Promise.withResolvers needs Node 22.) */
export function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
