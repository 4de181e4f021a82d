// Moments at which a process can die around a write, by name, and pools that die there. They know the names under which the
// ledger's statements are sent; the product has no hooks for it.
import { DatabaseError, InvalidOptionError } from "../core/errors.js";
import type { PoolLike } from "../postgres/pool.js";

/** Each with the statement, and whether it has been committed when the process dies. */
const POINTS = {
  /** Nothing is recorded: the next run does the write. */
  "before-intent": { statement: /^lh_begin_write$/, committed: false },
  /** The intent stands, and nothing was sent. */
  "after-intent": { statement: /^lh_begin_write$/, committed: true },
  /** The effect has happened, and nothing says so: the moment that a lookup is for. */
  "before-receipt": { statement: /^lh_succeed$/, committed: false },
  /** The receipt stands, and the graph has not gone on. */
  "after-receipt": { statement: /^lh_succeed$/, committed: true },
  /** After a receipt, before the next checkpoint is stored. */
  "before-checkpoint": { statement: /^lh_run_put$/, committed: false },
  /** After a receipt, when the next checkpoint is stored. */
  "after-checkpoint": { statement: /^lh_run_put$/, committed: true },
} as const;

/** A moment around the first write of a ledger. */
export type CrashPoint = keyof typeof POINTS;

type Query = PoolLike["query"];
type Die = () => Promise<never>;

/** From the point on, no statement reaches the database. */
export function dyingPool(pool: PoolLike, point: CrashPoint): PoolLike {
  let dead = false;
  return watched(
    pool,
    point,
    () => dead,
    async () => {
      dead = true;
      throw new DatabaseError(`The test's ledger has died (${point}), and its database hears nothing more of it.`);
    },
  );
}

/** At the point the process ends itself by SIGKILL. */
export function killingAt(pool: PoolLike, point: CrashPoint): PoolLike {
  return watched(
    pool,
    point,
    () => false,
    () => {
      process.kill(process.pid, "SIGKILL");
      return new Promise(() => {});
    },
  );
}

function watched(pool: PoolLike, point: CrashPoint, isDead: () => boolean, die: Die): PoolLike {
  const where = POINTS[point];
  if (where === undefined)
    throw new InvalidOptionError(
      `Expected the point to be one of ${Object.keys(POINTS).join(", ")}, got ${String(point)}.`,
    );
  let hasReceipt = !point.endsWith("checkpoint");
  const query = async (text: unknown, values?: unknown): Promise<unknown> => {
    if (isDead()) return die();
    const name = (text as { name?: string }).name ?? "";
    const here = hasReceipt && where.statement.test(name);
    if (here && !where.committed) return die();
    const answer = await pool.query(text as Parameters<Query>[0], values as Parameters<Query>[1]);
    if (here) return die();
    if (/^lh_succeed$/.test(name)) hasReceipt = true;
    return answer;
  };
  return {
    query: query as Query,
    connect: () => (isDead() ? die() : pool.connect()),
    end: () => pool.end(),
    on: (event, listener) => pool.on?.(event, listener),
  };
}
