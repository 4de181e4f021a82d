// What a checkpoint and pending writes look like on their way into PostgreSQL, and the part of the statements that
// stores them. Who may write is decided by the common table expression `allowed`, which the two gates define: no row
// in it, and nothing is stored.
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { Part } from "./references.js";
import type { ThreadMemory } from "./threadMemory.js";

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
  readonly parts: readonly Part[];
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
  readonly parts: readonly Part[];
}

/** The one clock, read once a statement. */
export const NOW = "at as materialized (select {schema}.ledger_now() as now)";

/**
 * The parts that are referred to cannot go while this is stored; no row's `epoch` means that some of them have gone. Two
 * statements that store the same parts take them in one order, so neither waits for the other in a circle.
 */
function heldFrom(source: string, first: number): string {
  return `held as materialized (
  select case when $${first + 4}::boolean then {schema}.hold_elements($1::text, $${first + 3}::text) else '' end as epoch from ${source}
)`;
}

export const HELD_EPOCH = "(select epoch from held) as epoch";

function storeParts(bytes: number, first: number): string {
  return `parts as (
  insert into {schema}.elements (thread_id, digest, body)
  select $1, u.digest, convert_from(substring($${bytes}::bytea from u.start for u.length), 'UTF8')
  from allowed, unnest($${first}::text[], $${first + 1}::int[], $${first + 2}::int[]) u (digest, start, length)
  order by u.digest collate "C"
  on conflict do nothing
)`;
}

/** Where the parameters of parts begin in either statement, and where the gate's own begin. */
const CHECKPOINT_PARTS = 13;
const WRITES_PARTS = 12;
export const CHECKPOINT_GATE = CHECKPOINT_PARTS + 5;
export const WRITES_GATE = WRITES_PARTS + 5;

export const heldForCheckpoint = (source: string): string => heldFrom(source, CHECKPOINT_PARTS);
export const heldForWrites = (source: string): string => heldFrom(source, WRITES_PARTS);

/** $1 to $17; stores a checkpoint when `allowed` has a row. One transaction makes it all or nothing. */
export const STORE_CHECKPOINT = `
${storeParts(12, CHECKPOINT_PARTS)},
blobs as (
  insert into {schema}.checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
  select $1::text, $2::text, u.channel, u.version, u.type, substring($12::bytea from u.start for u.length)
  from allowed, unnest($7::text[], $8::text[], $9::text[], $10::int[], $11::int[]) u (channel, version, type, start, length)
  on conflict (thread_id, checkpoint_ns, channel, version) do nothing
),
stored as (
  insert into {schema}.checkpoints as c (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
  select $1, $2, $3::text, $4::text, $5::jsonb, $6::jsonb from allowed
  on conflict (thread_id, checkpoint_ns, checkpoint_id) do update
  set checkpoint = excluded.checkpoint, metadata = excluded.metadata, longhaul_seq = excluded.longhaul_seq
  returning 1
)`;

export function checkpointValues(row: NewCheckpoint, memory: ThreadMemory): unknown[] {
  const { values } = row;
  return [
    row.threadId,
    row.ns,
    row.id,
    row.parentId ?? null,
    row.checkpoint,
    row.metadata,
    values.map(({ channel }) => channel),
    values.map(({ version }) => version),
    values.map(({ type }) => type),
    ...bytesAndParts(
      values.map(({ bytes }) => bytes),
      row.parts,
      memory,
    ),
  ];
}

/**
 * Where the values stand in the bytes, the bytes, and the same of the parts that this process does not know to be stored;
 * then as of when it knows the others, and whether there are any.
 */
function bytesAndParts(
  pieces: readonly (Uint8Array | undefined)[],
  parts: readonly Part[],
  memory: ThreadMemory,
): unknown[] {
  const unknown = memory.unknown(parts);
  const texts = unknown.map((part) => Buffer.from(part.text()));
  const [starts, lengths, bytes] = packed([...pieces, ...texts]);
  const count = pieces.length;
  return [
    starts.slice(0, count),
    lengths.slice(0, count),
    bytes,
    unknown.map(({ digest }) => digest),
    starts.slice(count),
    lengths.slice(count),
    unknown.length < parts.length ? (memory.epoch ?? null) : null,
    parts.length > 0,
  ];
}

/** Errors, interrupts, schedules and resume values replace what a task wrote before; of all else the first stays. */
export function replaces(row: NewWrites): boolean {
  return row.writes.every(({ channel }) => channel in WRITES_IDX_MAP);
}

/** $1 to $16; stores pending writes when `allowed` has a row. */
export function storeWrites(replace: boolean): string {
  const conflict = replace
    ? "do update set channel = excluded.channel, type = excluded.type, blob = excluded.blob, longhaul_path = excluded.longhaul_path"
    : "do nothing";
  return `
${storeParts(11, WRITES_PARTS)},
stored as (
  insert into {schema}.checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, longhaul_path, idx, channel, type, blob)
  select $1::text, $2::text, $3::text, $4::text, $5::text, u.idx, u.channel, u.type, substring($11::bytea from u.start for u.length)
  from allowed, unnest($6::int[], $7::text[], $8::text[], $9::int[], $10::int[]) u (idx, channel, type, start, length)
  on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) ${conflict}
)`;
}

export function writesValues(row: NewWrites, memory: ThreadMemory): unknown[] {
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
    ...bytesAndParts(
      writes.map(({ bytes }) => bytes),
      row.parts,
      memory,
    ),
  ];
}

/**
 * Starts, lengths and one piece of bytes. The driver sends a single piece as it is; a list of pieces it would write out
 * in hexadecimal, which takes twice as long for large values.
 */
function packed(
  pieces: readonly (Uint8Array | undefined)[],
): [starts: (number | null)[], lengths: (number | null)[], bytes: Buffer] {
  let end = 0;
  const starts = pieces.map((piece) => {
    // PostgreSQL counts from 1.
    const start = end + 1;
    end += piece?.length ?? 0;
    return piece === undefined ? null : start;
  });
  const present = pieces.filter((piece) => piece !== undefined);
  const lengths = pieces.map((piece) => piece?.length ?? null);
  return [starts, lengths, Buffer.concat(present)];
}
