// Pools that misbehave at a chosen statement. The product has no hooks: it is given a pool, and the pool knows the
// names under which the product's statements are prepared.
import type pg from "pg";
import type { PoolLike } from "../../src/postgres/pool.js";

/** The n-th statement of a name; `lh_begin_write` is the intent of a write, `lh_begin_read` that of a model call, `lh_succeed` the receipt. */
export interface KillPoint {
  /** `*` counts every statement that has a name. */
  readonly statement: string;
  readonly nth: number;
  /** Before it is sent, or when it is committed and its answer has come. */
  readonly at: "before" | "after";
}

/**
 * A pool whose process kills itself with SIGKILL at one statement. Pending writes that were sent before it have been
 * answered by then, so that "between putWrites and put" is exactly that.
 */
export function killingPool(pool: pg.Pool, point: KillPoint | undefined): PoolLike {
  let seen = 0;
  const writes = new Set<Promise<unknown>>();
  return listeningPool(pool, async (name, send) => {
    const here = point !== undefined && (point.statement === "*" || point.statement === name) && ++seen === point.nth;
    if (here && point.at === "before") {
      await Promise.allSettled(writes);
      return die();
    }
    const sent = send();
    if (name.startsWith("lh_run_writes")) writes.add(sent);
    const answer = await sent;
    return here ? die() : answer;
  });
}

/** Nothing runs after this line. */
function die(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => {});
}

/** A pool that holds back checkpoints and pending writes, so that they arrive in an order of chance. */
export function shufflingPool(pool: pg.Pool, random: () => number): PoolLike {
  return listeningPool(pool, async (name, send) => {
    if (/^lh_run_(put|writes)/.test(name)) await new Promise((resolve) => setTimeout(resolve, random() * 12));
    return send();
  });
}

type Send = () => Promise<pg.QueryResult>;

/** A pool that lets `around` see every statement that has a name. */
export function listeningPool(pool: PoolLike, around: (name: string, send: Send) => Promise<pg.QueryResult>): PoolLike {
  return {
    query: (query, values) => {
      const send: Send = () => (typeof query === "string" ? pool.query(query, values) : pool.query(query));
      const name = typeof query === "string" ? undefined : query.name;
      return name === undefined ? send() : around(name, send);
    },
    connect: () => pool.connect(),
    end: () => pool.end(),
    on: (event, listener) => pool.on?.(event, listener),
  };
}

/** Numbers of chance that are the same for one seed: mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
