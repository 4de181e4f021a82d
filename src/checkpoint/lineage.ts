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

// A thread has as many checkpoints as it has steps; the bound only keeps a damaged chain from going on for ever.
const AFTER = `
with recursive up (parent_checkpoint_id, source, depth) as (
  select c.parent_checkpoint_id, c.metadata ->> 'source', 0 from {schema}.checkpoints c
  where c.thread_id = $1 and c.checkpoint_ns = $2 and c.checkpoint_id = $4
  union all
  select c.parent_checkpoint_id, c.metadata ->> 'source', up.depth + 1
  from up join {schema}.checkpoints c
    on c.thread_id = $1 and c.checkpoint_ns = $2 and c.checkpoint_id = up.parent_checkpoint_id
  where up.parent_checkpoint_id <> $3 and up.depth < 100000
)
select source from up where parent_checkpoint_id = $3`;

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
