// Parts of a thread that no value refers to any more.
import type { Send } from "../postgres/send.js";
import { REFERRING_TYPE } from "./elements.js";

const LOCK = "select pg_advisory_xact_lock(hashtextextended('longhaul elements ' || $1::text, 4712))";

const DELETE = `
with recursive owners as (
  select b.blob from {schema}.checkpoint_blobs b where b.thread_id = $1::text and b.type = '${REFERRING_TYPE}'
  union all
  select w.blob from {schema}.checkpoint_writes w where w.thread_id = $1 and w.type = '${REFERRING_TYPE}'
),
refs (digest, slice) as (
  select r.digest, r.slice from owners o
    cross join lateral {schema}.element_refs(convert_from(substring(o.blob for position('\\x0a'::bytea in o.blob)), 'UTF8')) r
  union
  select r.digest, r.slice from refs join {schema}.elements e on refs.slice and e.thread_id = $1 and e.digest = refs.digest
    cross join lateral {schema}.element_refs(split_part(e.body, e'\\n', 1) || e'\\n') r
),
gone as (
  delete from {schema}.elements e where e.thread_id = $1 and not exists (select 1 from refs where refs.digest = e.digest)
  returning pg_column_size(e.*) as size
),
swept as (
  insert into {schema}.element_sweeps as s (thread_id, epoch) select $1, 1 where exists (select 1 from gone)
  on conflict (thread_id) do update set epoch = s.epoch + 1
)
select count(*)::int as n, coalesce(sum(size), 0)::float8 as bytes from gone`;

/**
 * Removes what nothing refers to any more, inside the transaction of who removed checkpoints, values or writes before. What is
 * stored meanwhile waits, and is told that parts have gone. Lock the thread's row first, as every put does.
 *
 * @returns the bytes that went.
 */
export async function deleteUnreferenced(send: Send, threadId: string): Promise<number> {
  await send(LOCK, [threadId]);
  const { rows } = await send(DELETE, [threadId]);
  const [gone] = rows as { bytes: number }[];
  return gone?.bytes ?? 0;
}
