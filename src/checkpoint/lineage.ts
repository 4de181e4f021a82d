// Where a checkpoint comes from: what the ledger asks when a write looks like one that was done before.
import type { PooledDatabase } from "../postgres/pool.js";

const PARENTS = `
select metadata -> 'parents' as parents from {schema}.checkpoints
where thread_id = $1 and checkpoint_ns = $2 and checkpoint_id = $3`;

/** The checkpoints of the enclosing graphs, by namespace; undefined for a checkpoint that is not there. */
export async function parentsOf(
  database: PooledDatabase,
  threadId: string,
  ns: string,
  id: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const [row] = await database.query<{ parents: Record<string, string> | null }>("parents_of", PARENTS, [
    threadId,
    ns,
    id,
  ]);
  return row && (row.parents ?? {});
}

// A thread has as many checkpoints as it has steps; the bound only keeps a damaged chain from going on for ever. A copy stands
// where the checkpoint stood that it is a copy of, beside it: what made that one is what counts.
const AFTER = `
with recursive up (checkpoint_id, parent_checkpoint_id, source, depth) as (
  select c.checkpoint_id, c.parent_checkpoint_id, c.metadata ->> 'source', 0 from {schema}.checkpoints c
  where c.thread_id = $1 and c.checkpoint_ns = $2 and c.checkpoint_id = $4
  union all
  select c.checkpoint_id, c.parent_checkpoint_id, c.metadata ->> 'source', up.depth + 1
  from up join {schema}.checkpoints c
    on c.thread_id = $1 and c.checkpoint_ns = $2 and c.checkpoint_id = up.parent_checkpoint_id
  where up.parent_checkpoint_id <> $3 and up.depth < 100000
)
select case when up.source = 'fork' then coalesce((
    select s.metadata ->> 'source' from {schema}.checkpoints c join {schema}.checkpoints s
      on s.thread_id = $1 and s.checkpoint_ns = $2 and s.parent_checkpoint_id = $3 and s.checkpoint -> 'channel_versions' = c.checkpoint -> 'channel_versions'
    where c.thread_id = $1 and c.checkpoint_ns = $2 and c.checkpoint_id = up.checkpoint_id and s.metadata ->> 'source' <> 'fork' limit 1), up.source)
  else up.source end as source
from up where up.parent_checkpoint_id = $3`;

/** The source of the checkpoint that followed `ancestorId` on the way to `id`; undefined when it is no ancestor. */
export async function sourceAfter(
  database: PooledDatabase,
  threadId: string,
  ns: string,
  ancestorId: string,
  id: string,
): Promise<string | undefined> {
  const [row] = await database.query<{ source: string }>("source_after", AFTER, [threadId, ns, ancestorId, id]);
  return row?.source;
}

export interface ForkPoint {
  readonly checkpointId: string;
  readonly parentId: string | undefined;
  /** LangGraph's count of supersteps; the input has -1. */
  readonly step: number | undefined;
  /** What made it: input, loop, update, fork. */
  readonly source: string | undefined;
  readonly at: Date | undefined;
  readonly isHead: boolean;
}

const POINTS = `
select c.checkpoint_id, c.parent_checkpoint_id, c.metadata ->> 'step' as step, c.metadata ->> 'source' as source, c.checkpoint ->> 'ts' as at,
  exists (select 1 from {schema}.heads h where h.thread_id = c.thread_id and h.checkpoint_ns = '' and h.checkpoint_id = c.checkpoint_id) as is_head
from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_ns = ''
order by c.longhaul_seq desc, c.checkpoint_id desc limit $2`;

interface PointRow {
  readonly checkpoint_id: string;
  readonly parent_checkpoint_id: string | null;
  readonly step: string | null;
  readonly source: string | null;
  readonly at: string | null;
  readonly is_head: boolean;
}

/** Points of a thread's past, the newest first. */
export async function forkPoints(database: PooledDatabase, threadId: string, limit: number): Promise<ForkPoint[]> {
  const rows = await database.query<PointRow>("fork_points", POINTS, [threadId, limit]);
  return rows.map((row) => ({
    checkpointId: row.checkpoint_id,
    parentId: row.parent_checkpoint_id ?? undefined,
    step: row.step === null ? undefined : Number(row.step),
    source: row.source ?? undefined,
    at: row.at === null ? undefined : new Date(row.at),
    isHead: row.is_head,
  }));
}
