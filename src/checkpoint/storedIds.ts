// The durability barrier (G5): which checkpoints are known to be stored, and waiting for those that are not yet.
// Nearly always memory knows; the database is asked only when a checkpoint keeps one waiting.
import { DurabilityBarrierError } from "../core/errors.js";
import type { PooledDatabase } from "../postgres/pool.js";
import type { RunBinding } from "./runBinding.js";

export type CheckpointPair = readonly [ns: string, checkpointId: string];

/** The first question to the database soon, because a healthy put is done in milliseconds; then ease off. */
const FIRST_LOOK_MS = 25;
const LAST_LOOK_MS = 500;

const STORED = `
select c.checkpoint_ns, c.checkpoint_id from {schema}.checkpoints c
join unnest($2::text[], $3::text[]) as asked (ns, id) on c.checkpoint_ns = asked.ns and c.checkpoint_id = asked.id
where c.thread_id = $1`;

/** Those of the checkpoints that are stored. */
async function readStored(
  database: PooledDatabase,
  threadId: string,
  pairs: readonly CheckpointPair[],
): Promise<CheckpointPair[]> {
  const columns = [pairs.map(([ns]) => ns), pairs.map(([, id]) => id)];
  const rows = await database.query<{ checkpoint_ns: string; checkpoint_id: string }>("stored", STORED, [
    threadId,
    ...columns,
  ]);
  return rows.map((row) => [row.checkpoint_ns, row.checkpoint_id]);
}

/** The barrier without a run's memory. */
export async function awaitInDatabase(
  open: () => Promise<PooledDatabase>,
  threadId: string,
  pairs: readonly CheckpointPair[],
  deadlineMs: number,
): Promise<void> {
  const nobody = { ticket: { threadId: "", generation: 0, epoch: 0n }, lost: undefined, lose: () => {} };
  return new StoredIds(open, nobody).awaitStored(threadId, pairs, deadlineMs);
}

export class StoredIds {
  readonly #known = new Set<string>();
  /** Namespaces in which a put failed: LangGraph sends none after it, so nothing newer will ever be stored there. */
  readonly #failed = new Map<string, unknown>();
  readonly #waiting = new Set<() => void>();

  constructor(
    readonly open: () => Promise<PooledDatabase>,
    readonly run: RunBinding,
  ) {}

  add(ns: string, id: string): void {
    this.#known.add(keyOf([ns, id]));
    this.#failed.delete(ns);
    this.wake();
  }

  fail(ns: string, error: unknown): void {
    this.#failed.set(ns, error);
    this.wake();
  }

  /** Lets everyone who waits look again. */
  wake(): void {
    for (const resume of [...this.#waiting]) resume();
  }

  async awaitStored(threadId: string, pairs: readonly CheckpointPair[], deadlineMs: number): Promise<void> {
    const ours = threadId === this.run.ticket.threadId;
    const until = performance.now() + deadlineMs;
    let missing = [...pairs];
    for (let waitMs = ours ? FIRST_LOOK_MS : 0; ; waitMs = Math.min(2 * waitMs + 1, LAST_LOOK_MS)) {
      if (ours) missing = missing.filter((pair) => !this.#known.has(keyOf(pair)));
      if (this.run.lost !== undefined)
        throw barrier(threadId, missing[0] ?? pairs[0], "this run has lost its thread", this.run.lost);
      const [next] = missing;
      if (next === undefined) return;
      const hopeless = missing.find(([ns]) => ours && this.#failed.has(ns));
      if (hopeless !== undefined)
        throw barrier(threadId, hopeless, "it could not be stored", this.#failed.get(hopeless[0]));
      const leftMs = until - performance.now();
      if (leftMs <= 0) {
        const hint = 'With `durability: "exit"`, and below a subgraph with `checkpointer: false`, it never is';
        throw barrier(threadId, next, `it was not stored within ${deadlineMs} ms. ${hint}`);
      }
      if (await this.#changedWithin(Math.min(waitMs, leftMs))) continue;
      const found = await readStored(await this.open(), threadId, missing);
      if (ours) for (const [ns, id] of found) this.add(ns, id);
      missing = missing.filter((pair) => !found.some((other) => keyOf(other) === keyOf(pair)));
    }
  }

  /** False when the time is over and nothing happened. */
  #changedWithin(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (changed: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(resume);
        resolve(changed);
      };
      const resume = () => finish(true);
      const timer = setTimeout(() => finish(false), ms);
      this.#waiting.add(resume);
    });
  }
}

function keyOf([ns, id]: CheckpointPair): string {
  return `${ns}\0${id}`;
}

function barrier(
  threadId: string,
  pair: CheckpointPair | undefined,
  why: string,
  cause?: unknown,
): DurabilityBarrierError {
  const which =
    pair === undefined
      ? "The checkpoints that this step stands on"
      : `The checkpoint ${pair[1]} of namespace "${pair[0]}"`;
  return new DurabilityBarrierError(`${which} cannot be relied on: ${why}. Nothing was sent.`, { threadId, cause });
}
