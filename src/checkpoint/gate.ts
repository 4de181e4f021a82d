// Who may write checkpoints, and what becomes the head. LedgerSaver serialises and reads; a gate decides and stores.
import { ThreadBusyError } from "../core/errors.js";
import type { PooledDatabase } from "../postgres/pool.js";
import {
  checkpointValues,
  type NewCheckpoint,
  type NewWrites,
  NOW,
  replaces,
  STORE_CHECKPOINT,
  storeWrites,
  writesValues,
} from "./writes.js";

/** What a read told about a namespace. */
export interface Sight {
  readonly threadId: string;
  readonly ns: string;
  /** The heads row; undefined when there is none. */
  readonly headRow: string | undefined;
  /** Set when a checkpoint was asked for by its id. */
  readonly askedId: string | undefined;
  /** The newest checkpoint, when that was the question; null when there is none. */
  readonly newestId?: string | null;
  readonly foundIds: readonly string[];
}

export interface WriteGate {
  /** The checkpoint comes as a promise, because a put takes its turn when it is called, not when it is serialised. */
  put(threadId: string, ns: string, checkpoint: Promise<NewCheckpoint>): Promise<void>;
  putWrites(writes: NewWrites): Promise<void>;
  /** Resolves when the puts that are under way in a namespace have ended: what is read after it includes them. */
  settled(threadId: string, ns: string): Promise<void>;
  /** Is told of every read. */
  saw(sight: Sight): void;
}

// The lock on the thread's row makes a run that starts at this moment wait, and then load what was written here. The
// heads row is locked before the checkpoint takes its place in the order, so that both always agree.
const FREE = `
thread as (select t.lease_until > at.now as live from {schema}.threads t, at where t.thread_id = $1::text for share of t),
free as (select 1 as yes where not exists (select 1 from thread where live))`;

const PUT = `with ${NOW}, ${FREE},
allowed as (
  insert into {schema}.heads as h (thread_id, checkpoint_ns, checkpoint_id) select $1, $2, $3 from free
  on conflict (thread_id, checkpoint_ns) do update set checkpoint_id = excluded.checkpoint_id returning 1
), ${STORE_CHECKPOINT}
select (select count(*) from free)::int as free`;

const putWritesText = (replace: boolean) => `with ${NOW}, ${FREE},
allowed as (select yes from free), ${storeWrites(replace)}
select (select count(*) from free)::int as free`;
const PUT_WRITES = { true: putWritesText(true), false: putWritesText(false) };

/** The gate of a saver that belongs to no run: open unless a run has the thread. The head is the last put. */
export class OpenGate implements WriteGate {
  constructor(readonly open: () => Promise<PooledDatabase>) {}

  async put(threadId: string, _ns: string, checkpoint: Promise<NewCheckpoint>): Promise<void> {
    const row = await checkpoint;
    const database = await this.open();
    const [answer] = await database.query<{ free: number }>("open_put", PUT, checkpointValues(row));
    if (answer?.free !== 1) throw busy(threadId);
  }

  async putWrites(row: NewWrites): Promise<void> {
    const database = await this.open();
    const replace = replaces(row);
    const name = replace ? "open_writes_over" : "open_writes";
    const [answer] = await database.query<{ free: number }>(name, PUT_WRITES[`${replace}`], writesValues(row));
    if (answer?.free !== 1) throw busy(row.threadId);
  }

  async settled(): Promise<void> {}

  saw(): void {}
}

function busy(threadId: string): ThreadBusyError {
  return new ThreadBusyError(
    `Thread "${threadId}" is being run; its checkpoints cannot be changed from outside until that run has ended. Nothing was stored.`,
    { threadId },
  );
}
