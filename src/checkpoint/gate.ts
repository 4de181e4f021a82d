// Who may write checkpoints, and what becomes the head. LedgerSaver serialises and reads; a gate decides and stores.
import { NotFoundError, ThreadBusyError } from "../core/errors.js";
import type { PooledDatabase } from "../postgres/pool.js";
import type { Part } from "./references.js";
import type { ThreadMemories, ThreadMemory } from "./threadMemory.js";
import {
  checkpointValues,
  HELD_EPOCH,
  heldForCheckpoint,
  heldForWrites,
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
// heads row is locked before the checkpoint takes its place in the order, so that both always agree. In a thread that was
// deleted once only what follows a checkpoint that is there, or begins anew, is stored: what comes late belongs to the
// thread that is gone. A deletion that ends at this moment is seen in the generation alone.
const freeWhere = (follows: string) => `
before as materialized (select t.generation from {schema}.threads t where t.thread_id = $1::text),
thread as (
  select t.lease_until > at.now or t.delete_requested_at is not null as live, t.generation from {schema}.threads t, at
  where t.thread_id = $1 for share of t
),
late as (
  select 1 from thread where generation > 0 and (generation is distinct from (select generation from before) or not (${follows}))
),
free as (select 1 as yes where not exists (select 1 from thread where live) and not exists (select 1 from late))`;
const FREE_OR_WHY = `select (select count(*) from free)::int as free, (select count(*) from late)::int as late, ${HELD_EPOCH}`;

const PUT = `with ${NOW}, ${freeWhere(`$4::text is null and $2::text = '' or exists (
    select 1 from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_ns = case when $4 is null then '' else $2 end
      and ($4 is null or c.checkpoint_id = $4))`)},
${heldForCheckpoint("free")},
allowed as (
  insert into {schema}.heads as h (thread_id, checkpoint_ns, checkpoint_id) select $1, $2, $3 from held where epoch is not null
  on conflict (thread_id, checkpoint_ns) do update set checkpoint_id = excluded.checkpoint_id returning 1
), ${STORE_CHECKPOINT}
${FREE_OR_WHY}`;

const putWritesText = (replace: boolean) => `with ${NOW}, ${freeWhere(`exists (
    select 1 from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_ns = $2::text and c.checkpoint_id = $3::text)`)},
${heldForWrites("free")},
allowed as (select 1 as yes from held where epoch is not null), ${storeWrites(replace)}
${FREE_OR_WHY}`;
const PUT_WRITES = { true: putWritesText(true), false: putWritesText(false) };

/** The gate of a saver that belongs to no run: open unless a run has the thread. The head is the last put. */
export class OpenGate implements WriteGate {
  /** Puts that are under way: what belongs to them may be sent before they are stored. */
  readonly #putting = new Map<string, Promise<unknown>>();

  constructor(
    readonly open: () => Promise<PooledDatabase>,
    readonly memories: ThreadMemories,
  ) {}

  async put(threadId: string, _ns: string, checkpoint: Promise<NewCheckpoint>): Promise<void> {
    const before = this.#putting.get(threadId);
    const put = checkpoint.then((row) =>
      this.#store(row, before, "open_put", PUT, (memory) => checkpointValues(row, memory)),
    );
    const settled = Promise.allSettled([before, put]);
    this.#putting.set(threadId, settled);
    try {
      await put;
    } finally {
      if (this.#putting.get(threadId) === settled) this.#putting.delete(threadId);
    }
  }

  async putWrites(row: NewWrites): Promise<void> {
    const replace = replaces(row);
    const name = replace ? "open_writes_over" : "open_writes";
    const before = this.#putting.get(row.threadId);
    await this.#store(row, before, name, PUT_WRITES[`${replace}`], (memory) => writesValues(row, memory));
  }

  async #store(
    { threadId, parts }: { readonly threadId: string; readonly parts: readonly Part[] },
    before: Promise<unknown> | undefined,
    name: string,
    text: string,
    values: (memory: ThreadMemory) => unknown[],
  ): Promise<void> {
    const database = await this.open();
    const memory = this.memories.of(threadId);
    const send = () =>
      withParts(memory, parts, () =>
        database.query<{ free: number; late: number; epoch: string | null }>(name, text, values(memory)),
      );
    let [answer] = await send();
    if (answer?.late === 1 && before !== undefined) {
      await before;
      [answer] = await send();
    }
    if (answer?.late === 1) throw deleted(threadId);
    if (answer?.free !== 1) throw busy(threadId);
  }

  async settled(): Promise<void> {}

  saw(): void {}
}

/** Sends once more, with every part, when parts that this process took for stored have been removed. */
export async function withParts<Answer extends { readonly epoch: string | null; readonly stored?: number }>(
  memory: ThreadMemory,
  parts: readonly Part[],
  send: () => Promise<Answer[]>,
): Promise<Answer[]> {
  const relied = memory.epoch !== undefined;
  let answers = await send();
  if (answers[0]?.epoch === null && relied && parts.length > 0) {
    memory.forget();
    answers = await send();
  }
  const epoch = answers[0]?.epoch;
  if (parts.length > 0 && typeof epoch === "string" && answers[0]?.stored !== 0) {
    memory.learn(
      epoch,
      parts.map(({ digest }) => digest),
    );
  }
  return answers;
}

function deleted(threadId: string): NotFoundError {
  return new NotFoundError(
    `Thread "${threadId}" was deleted, and this checkpoint belongs to what it was before. Nothing was stored.`,
    { threadId },
  );
}

function busy(threadId: string): ThreadBusyError {
  return new ThreadBusyError(
    `Thread "${threadId}" is being run, or deleted; its checkpoints cannot be changed from outside until that run has ended. Nothing was stored.`,
    { threadId },
  );
}
