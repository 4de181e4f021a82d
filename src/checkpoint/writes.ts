// What a checkpoint and pending writes look like on their way into PostgreSQL, and the part of the statements that
// stores them. Who may write is decided by the common table expression `allowed`, which the two gates define: no row
// in it, and nothing is stored.
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";

/** A checkpoint that is about to be stored. */
export interface NewCheckpoint {
  readonly threadId: string;
  readonly ns: string;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly source: string;
  /** The run that wrote it was given a point in the past to start from. */
  readonly replay: boolean;
  readonly checkpoint: string;
  readonly metadata: string;
  readonly values: readonly NewValue[];
}

export interface NewValue {
  readonly channel: string;
  readonly version: string;
  readonly type: string;
  readonly bytes: Uint8Array | undefined;
}

/** What one task wrote, about to be stored at the checkpoint it ran on. */
export interface NewWrites {
  readonly threadId: string;
  readonly ns: string;
  readonly checkpointId: string;
  readonly taskId: string;
  readonly taskPath: string;
  readonly writes: readonly {
    readonly idx: number;
    readonly channel: string;
    readonly type: string;
    readonly bytes: Uint8Array;
  }[];
}

/** The one clock, read once a statement. */
export const NOW = "at as materialized (select {schema}.ledger_now() as now)";

/** $1 to $10; stores a checkpoint when `allowed` has a row. The values first, though one transaction makes it all or nothing. */
export const STORE_CHECKPOINT = `
blobs as (
  insert into {schema}.checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
  select $1::text, $2::text, u.* from allowed, unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) u
  on conflict (thread_id, checkpoint_ns, channel, version) do nothing
),
stored as (
  insert into {schema}.checkpoints as c (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
  select $1, $2, $7::text, $8::text, $9::jsonb, $10::jsonb from allowed
  on conflict (thread_id, checkpoint_ns, checkpoint_id) do update
  set checkpoint = excluded.checkpoint, metadata = excluded.metadata, longhaul_seq = excluded.longhaul_seq
  returning 1
)`;

export function checkpointValues(row: NewCheckpoint): unknown[] {
  const { values } = row;
  return [
    row.threadId,
    row.ns,
    values.map(({ channel }) => channel),
    values.map(({ version }) => version),
    values.map(({ type }) => type),
    values.map(({ bytes }) => (bytes === undefined ? null : asBuffer(bytes))),
    row.id,
    row.parentId ?? null,
    row.checkpoint,
    row.metadata,
  ];
}

/** Errors, interrupts, schedules and resume values replace what a task wrote before; all else is written once (first wins). */
export function replaces(row: NewWrites): boolean {
  return row.writes.every(({ channel }) => channel in WRITES_IDX_MAP);
}

/** $1 to $9; stores pending writes when `allowed` has a row. */
export function storeWrites(replace: boolean): string {
  const conflict = replace
    ? "do update set channel = excluded.channel, type = excluded.type, blob = excluded.blob, longhaul_path = excluded.longhaul_path"
    : "do nothing";
  return `
stored as (
  insert into {schema}.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, longhaul_path, idx, channel, type, blob)
  select $1::text, $2::text, $3::text, $4::text, $5::text, u.* from allowed, unnest($6::int[], $7::text[], $8::text[], $9::bytea[]) u
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) ${conflict}
)`;
}

export function writesValues(row: NewWrites): unknown[] {
  // One statement cannot write a row twice, so of two writes to one special channel the last stays.
  const writes = replaces(row) ? [...new Map(row.writes.map((write) => [write.idx, write])).values()] : row.writes;
  return [
    row.threadId,
    row.ns,
    row.checkpointId,
    row.taskId,
    row.taskPath,
    writes.map(({ idx }) => idx),
    writes.map(({ channel }) => channel),
    writes.map(({ type }) => type),
    writes.map(({ bytes }) => asBuffer(bytes)),
  ];
}

/** The driver writes Buffers as bytes; of other arrays it would make lists. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
