// The way back: a thread's values in the form in which LangGraph's own PostgresSaver stores them, in place, so that it reads
// the thread where it is. LedgerSaver reads it as before, and stores in its own form again what it writes next.
import { JsonPlusSerializer, TASKS } from "@langchain/langgraph-checkpoint";
import { lockIdle } from "../postgres/idle.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { type Send, sendOn } from "../postgres/send.js";
import { messageCodec } from "../values/messageCodec.js";
import { readValue } from "./storedValue.js";
import { deleteUnreferenced } from "./unreferenced.js";

export interface ExportedThread {
  readonly threadId: string;
  /** Values and pending writes that were brought into the other form. */
  readonly values: number;
  /** What the other form would change, each with its place; nothing of the thread was touched then. */
  readonly refused: readonly string[];
  /** Namespaces of which PostgresSaver, which goes by ids, would take another checkpoint for the newest. */
  readonly otherHead: readonly string[];
}

const VALUES = `
select 'value' as kind, b.checkpoint_ns as ns, '' as checkpoint_id, b.channel, b.version, '' as task_id, 0 as idx, b.type, b.blob
from {schema}.checkpoint_blobs b where b.thread_id = $1 and b.type like 'longhaul%'
union all
select 'write', w.checkpoint_ns, w.checkpoint_id, w.channel, '', w.task_id, w.idx, w.type, w.blob
from {schema}.checkpoint_writes w where w.thread_id = $1 and w.type like 'longhaul%'`;
const PARTS = "select digest, body from {schema}.elements where thread_id = $1";
const STORE = {
  value: `update {schema}.checkpoint_blobs set type = $6, blob = $7
    where thread_id = $1 and checkpoint_ns = $2 and $3::text = '' and channel = $4 and version = $5 and $8::text = '' and $9::int = 0`,
  write: `update {schema}.checkpoint_writes set type = $6, blob = $7
    where thread_id = $1 and checkpoint_ns = $2 and checkpoint_id = $3 and channel = $4 and $5::text = '' and task_id = $8 and idx = $9`,
};
const OTHER_HEAD = `
select ns from (
  select c.checkpoint_ns as ns, (array_agg(c.checkpoint_id order by c.longhaul_seq desc, c.checkpoint_id desc))[1] as ours,
    max(c.checkpoint_id) as theirs from {schema}.checkpoints c where c.thread_id = $1 group by c.checkpoint_ns
) h where ours <> theirs order by ns`;

interface ValueRow {
  readonly kind: "value" | "write";
  readonly ns: string;
  readonly checkpoint_id: string;
  readonly channel: string;
  readonly version: string;
  readonly task_id: string;
  readonly idx: number;
  readonly type: string;
  readonly blob: Buffer;
}

const UNDONE = Symbol("nothing is to stay of it");

/**
 * Brings a thread into the form of LangGraph's own saver, all of it or nothing.
 *
 * @throws ThreadBusyError while a run has the thread.
 */
export async function exportThread(database: PooledDatabase, threadId: string): Promise<ExportedThread> {
  let exported: ExportedThread = { threadId, values: 0, refused: [], otherHead: [] };
  const work = database.transaction(async (client) => {
    const send = sendOn(client, database);
    await lockIdle(send, threadId);
    exported = await exportWithin(send, threadId);
    if (exported.refused.length > 0) throw UNDONE;
  });
  await work.catch((error: unknown) => {
    if (error !== UNDONE) throw error;
  });
  return exported;
}

async function exportWithin(send: Send, threadId: string): Promise<ExportedThread> {
  const serde = new JsonPlusSerializer();
  const found = (await send(PARTS, [threadId])).rows as { digest: string; body: string }[];
  const parts = new Map(found.map(({ digest, body }) => [digest, body]));
  const rows = (await send(VALUES, [threadId])).rows as ValueRow[];
  const refused: string[] = [];
  for (const row of rows) {
    const { kind, ns, channel, version, checkpoint_id: checkpointId } = row;
    const place = { threadId, ns, checkpointId, channel, version: kind === "value" ? version : undefined };
    const value = await readValue(serde, { type: row.type, bytes: row.blob }, parts, place);
    const [type, bytes] = await serde.dumpsTyped(value);
    // Sends come back as LangGraph reads them from its own saver.
    if (channel !== TASKS && !(await comesBackEqual(serde, value, type, bytes))) {
      refused.push(`channel "${channel}", ${kind === "value" ? `version ${version}` : `a write at ${checkpointId}`}`);
      continue;
    }
    const where = [threadId, ns, checkpointId, channel, version, type, Buffer.from(bytes), row.task_id, row.idx];
    await send(STORE[kind], where);
  }
  await deleteUnreferenced(send, threadId);
  const otherHead = (await send(OTHER_HEAD, [threadId])).rows as { ns: string }[];
  return { threadId, values: rows.length - refused.length, refused, otherHead: otherHead.map(({ ns }) => ns) };
}

async function comesBackEqual(
  serde: JsonPlusSerializer,
  value: unknown,
  type: string,
  bytes: Uint8Array,
): Promise<boolean> {
  const textOf = (each: unknown) => JSON.stringify(messageCodec.pack(each, "value"));
  try {
    return textOf(await serde.loadsTyped(type, bytes)) === textOf(value);
  } catch {
    return false;
  }
}

const THREADS = `
select distinct c.thread_id from {schema}.checkpoints c where c.thread_id > $1::text order by c.thread_id limit 500`;

/** The threads that have checkpoints, after `after`. */
export async function threadsWithCheckpoints(database: PooledDatabase, after: string): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("export_threads", THREADS, [after]);
  return rows.map(({ thread_id }) => thread_id);
}
