// Reading checkpoints: one statement and one round trip for a checkpoint, its values, its pending writes and the head
// of its namespace. Values come as rows of their own, not as arrays of bytes, which the driver parses letter by letter.
import { compareWritesSortKeys } from "@langchain/langgraph-checkpoint";
import type { Database } from "../postgres/pool.js";
import { REFERRING_TYPE } from "./elements.js";

/** Which checkpoints to read: a statement's condition, named by its shape so that it is prepared once. */
export interface Selection {
  readonly shape: string;
  /** Common table expressions that `where` uses, each ending in a comma. */
  readonly with?: string;
  readonly where: string;
  readonly limit: number | undefined;
  readonly values: readonly unknown[];
  /** The namespace whose head is read along with it. */
  readonly headOf: { readonly threadId: string; readonly ns: string } | undefined;
}

/** A value as it is stored: what the serializer called its type, and its bytes. */
export interface StoredValue {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** The texts that values refer to, by digest. */
export type PartTexts = ReadonlyMap<string, string>;

export interface StoredCheckpoint {
  readonly threadId: string;
  readonly ns: string;
  readonly id: string;
  readonly parentId: string | undefined;
  /** LangGraph's checkpoint without its values. */
  readonly checkpoint: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
  readonly values: readonly (StoredValue & { readonly channel: string })[];
  /** In the order in which the superstep applied them. */
  readonly writes: readonly (StoredValue & { readonly taskId: string; readonly channel: string })[];
}

export interface Loaded {
  /** The newest first. */
  readonly checkpoints: readonly StoredCheckpoint[];
  /** The heads row that was asked for, if there is one. */
  readonly headRow: string | undefined;
  /** What the values refer to, by thread. */
  readonly parts: ReadonlyMap<string, PartTexts>;
  /** As of how many removals the parts are there, by thread. */
  readonly epochs: ReadonlyMap<string, string>;
}

export const NEWEST_FIRST = "cp.longhaul_seq desc, cp.checkpoint_id desc";

interface Row {
  readonly n: number;
  readonly part: "head" | "checkpoint" | "value" | "write" | "element" | "epoch";
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly d: string | null;
  readonly idx: number | null;
  readonly checkpoint: Record<string, unknown> | null;
  readonly metadata: Record<string, unknown> | null;
  readonly blob: Buffer | null;
  readonly body: string | null;
}

/** The parts that `vals` and `wrts` refer to. What refers to parts says so in its first line; slices refer to more. */
export const REFERRED = `
owners as (
  select thread_id, blob from vals where type = '${REFERRING_TYPE}'
  union all select thread_id, blob from wrts where type = '${REFERRING_TYPE}'
),
refs (thread_id, digest, slice) as (
  select o.thread_id, r.digest, r.slice from owners o
    cross join lateral {schema}.element_refs(convert_from(substring(o.blob for position('\\x0a'::bytea in o.blob)), 'UTF8')) r
  union
  select refs.thread_id, r.digest, r.slice from refs
    join {schema}.elements e on refs.slice and e.thread_id = refs.thread_id and e.digest = refs.digest
    cross join lateral {schema}.element_refs(split_part(e.body, e'\\n', 1) || e'\\n') r
)`;

function selectText(selection: Selection): { text: string; values: unknown[] } {
  const values = [...selection.values];
  const next = (value: unknown) => `$${values.push(value)}`;
  const limit = selection.limit === undefined ? "" : `limit ${next(selection.limit)}::bigint`;
  const { headOf } = selection;
  const head =
    headOf === undefined
      ? ""
      : `union all select 0, 'head', h.checkpoint_id, null, null, null, null, null, null, null, null from {schema}.heads h
  where h.thread_id = ${next(headOf.threadId)}::text and h.checkpoint_ns = ${next(headOf.ns)}::text`;
  const text = `with recursive ${selection.with ?? ""} picked as materialized (
  select cp.*, row_number() over (order by ${NEWEST_FIRST})::int as n from {schema}.checkpoints cp
  where ${selection.where} order by ${NEWEST_FIRST} ${limit}
),
vals as materialized (
  select p.n, p.thread_id, v.key, bl.type, bl.blob from picked p
  cross join lateral jsonb_each_text(p.checkpoint -> 'channel_versions') v
  join {schema}.checkpoint_blobs bl on bl.thread_id = p.thread_id and bl.checkpoint_ns = p.checkpoint_ns
    and bl.channel = v.key and bl.version = v.value
  where bl.type <> 'empty'
),
wrts as materialized (
  select p.n, w.* from picked p
  join {schema}.checkpoint_writes w on w.thread_id = p.thread_id and w.checkpoint_ns = p.checkpoint_ns
    and w.checkpoint_id = p.checkpoint_id
),${REFERRED}
select p.n, 'checkpoint' as part, p.thread_id as a, p.checkpoint_ns as b, p.checkpoint_id as c, p.parent_checkpoint_id as d,
  null::int as idx, p.checkpoint, p.metadata, null::bytea as blob, null as body from picked p
union all
select v.n, 'value', v.key, v.type, v.thread_id, null, null, null, null, v.blob, null from vals v
union all
select w.n, 'write', w.task_id, w.channel, w.type, w.longhaul_path, w.idx, null, null, w.blob, null from wrts w
union all
select -1, 'element', e.thread_id, e.digest, null, null, null, null, null, null, e.body
  from refs join {schema}.elements e on e.thread_id = refs.thread_id and e.digest = refs.digest
union all
select -1, 'epoch', o.thread_id, {schema}.element_epoch(o.thread_id), null, null, null, null, null, null, null
  from (select distinct owners.thread_id from owners) o
${head}`;
  return { text, values };
}

export async function loadCheckpoints(database: Database, selection: Selection): Promise<Loaded> {
  const { text, values } = selectText(selection);
  const shape = `${selection.shape}${selection.limit === undefined ? "" : "_n"}${selection.headOf === undefined ? "" : "_h"}`;
  const rows = await database.query<Row>(`load_${shape}`, text, values);
  const byNumber = new Map<number, Row[]>();
  for (const row of rows) {
    const group = byNumber.get(row.n);
    if (group === undefined) byNumber.set(row.n, [row]);
    else group.push(row);
  }
  const headRow = byNumber.get(0)?.[0]?.a;
  byNumber.delete(0);
  const shared = byNumber.get(-1) ?? [];
  byNumber.delete(-1);
  const checkpoints = [...byNumber].sort(([a], [b]) => a - b).map(([, group]) => gather(group));
  return { checkpoints, headRow, ...partsIn(shared) };
}

function partsIn(rows: readonly Row[]): Pick<Loaded, "parts" | "epochs"> {
  const parts = new Map<string, Map<string, string>>();
  const epochs = new Map<string, string>();
  for (const { part, a: threadId, b, body } of rows) {
    if (part === "epoch") epochs.set(threadId, b);
    else {
      const texts = parts.get(threadId) ?? new Map<string, string>();
      parts.set(threadId, texts.set(b, body ?? ""));
    }
  }
  return { parts, epochs };
}

function gather(rows: readonly Row[]): StoredCheckpoint {
  const main = rows.find((row) => row.part === "checkpoint");
  if (main === undefined) throw new Error("PostgreSQL returned parts of a checkpoint without the checkpoint.");
  const writes = rows.filter((row) => row.part === "write");
  // Also when no path is stored: the database's collation is not the order that LangGraph runs tasks in.
  writes.sort((left, right) => compareWritesSortKeys(sortKey(left), sortKey(right)));
  return {
    threadId: main.a,
    ns: main.b,
    id: main.c,
    parentId: main.d ?? undefined,
    checkpoint: main.checkpoint ?? {},
    metadata: main.metadata ?? {},
    values: rows
      .filter((row) => row.part === "value")
      .map((row) => ({ channel: row.a, type: row.b, bytes: bytesOf(row) })),
    writes: writes.map((row) => ({ taskId: row.a, channel: row.b, type: row.c, bytes: bytesOf(row) })),
  };
}

function sortKey(row: Row): [string, string, number] {
  return [row.d ?? "", row.a, row.idx ?? 0];
}

function bytesOf(row: Row): Uint8Array {
  return row.blob ?? new Uint8Array();
}

const SENDS = `
select w.task_id, w.idx, w.type, w.blob from {schema}.checkpoint_writes w
where w.thread_id = $1 and w.checkpoint_ns = $2 and w.checkpoint_id = $3 and w.channel = $4`;

interface SendRow {
  readonly task_id: string;
  readonly idx: number;
  readonly type: string;
  readonly blob: Buffer;
}

/** The Sends that were written at a checkpoint, in order. */
export async function loadPendingSends(
  database: Database,
  threadId: string,
  ns: string,
  checkpointId: string,
  channel: string,
): Promise<StoredValue[]> {
  const rows = await database.query<SendRow>("load_sends", SENDS, [threadId, ns, checkpointId, channel]);
  rows.sort((a, b) => compareWritesSortKeys(["", a.task_id, a.idx], ["", b.task_id, b.idx]));
  return rows.map((row) => ({ type: row.type, bytes: row.blob }));
}
