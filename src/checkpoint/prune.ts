// Removing old checkpoints, and what hangs on them alone. What is left is whole: of a thread the newest checkpoints stay, so
// whatever can be loaded, replayed or forked has all of its values, writes, subgraphs and steps.

import type { PooledDatabase } from "../postgres/pool.js";
import { type Send, sendOn } from "../postgres/send.js";
import { type GoneCheckpoint, lockForPrune, OPEN_STEP, pruneSteps } from "../postgres/stepRetention.js";
import { deleteUnreferenced } from "./unreferenced.js";

export interface PruneTerms {
  readonly keepLast: number;
  readonly olderThanMs: number | undefined;
  readonly dryRun: boolean;
}

export interface PrunedThread {
  readonly checkpoints: number;
  readonly steps: number;
  /** Of checkpoints, pending writes and values. */
  readonly bytes: number;
  readonly skipped: boolean;
}

/** Checkpoints of the root graph that go in one transaction: it holds back a run that would start meanwhile. */
const BATCH = 2000;

// Workers write the time; one that cannot be read is too new to be removed.
const STORED_AT = `case when c.checkpoint ->> 'ts' ~ '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d' then (c.checkpoint ->> 'ts')::timestamptz else 'infinity' end`;

// The order of storing makes the cut: whatever stands on a checkpoint that stays was stored after it, and stays. The head
// stays, and so does everything from the oldest step on that somebody has to come back to.
const CANDIDATES = `
with root as materialized (
  select c.checkpoint_id as id, c.parent_checkpoint_id as parent, c.metadata ->> 'source' as source, ${STORED_AT} as at,
    row_number() over (order by c.longhaul_seq desc, c.checkpoint_id desc) as rn
  from {schema}.checkpoints c where c.thread_id = $1::text and c.checkpoint_ns = ''
),
needed (id) as (
  select h.checkpoint_id from {schema}.heads h where h.thread_id = $1 and h.checkpoint_ns = ''
  union
  select coalesce(nullif(c.metadata -> 'parents' ->> '', ''), c.checkpoint_id) from {schema}.steps s
  join {schema}.checkpoints c on c.thread_id = s.thread_id and c.checkpoint_id = s.checkpoint_id
  where s.thread_id = $1 and ${OPEN_STEP}
),
kept as (
  select greatest($2::bigint, coalesce(max(root.rn), 0)) as rn from root, (select {schema}.ledger_now() as now) t
  where root.id in (select id from needed) or root.at >= t.now - make_interval(secs => $3::bigint / 1000.0)
)
select root.id, root.parent, root.source from root, kept where root.rn > kept.rn order by root.rn desc limit $4`;

// Where the branches that are left begin: checkpoints that stay, and whose parent does not.
const ENTRIES = `
select c.parent_checkpoint_id as parent, c.metadata ->> 'source' as source from {schema}.checkpoints c
where c.thread_id = $1 and c.checkpoint_ns = '' and not exists (select 1 from unnest($2::text[]) g (id) where g.id = c.checkpoint_id)
  and not exists (
    select 1 from {schema}.checkpoints p where p.thread_id = $1 and p.checkpoint_ns = '' and p.checkpoint_id = c.parent_checkpoint_id
      and not exists (select 1 from unnest($2::text[]) g (id) where g.id = p.checkpoint_id))`;

// Of a subgraph that keeps its own history (a namespace without a task's id) the newest is what the next visit loads. One that
// was left for that reason goes with a later prune.
const INNER = `
select i.id, i.root from (
  select c.checkpoint_id as id, c.metadata -> 'parents' ->> '' as root, c.checkpoint_ns ~ '(^|\\|)[^|:]+$' as has_history,
    row_number() over (partition by c.checkpoint_ns order by c.longhaul_seq desc, c.checkpoint_id desc) as rn
  from {schema}.checkpoints c
  where c.thread_id = $1 and c.checkpoint_ns <> '' and (c.metadata -> 'parents' ->> '' = any($2::text[]) or not exists (
    select 1 from {schema}.checkpoints r where r.thread_id = $1 and r.checkpoint_ns = ''
      and r.checkpoint_id = coalesce(c.metadata -> 'parents' ->> '', r.checkpoint_id)))
) i where not (i.has_history and i.rn = 1)`;

const DELETES = [
  `with gone as (delete from {schema}.checkpoint_writes w where w.thread_id = $1 and w.checkpoint_id = any($2::text[]) returning pg_column_size(w.*) as size)
   select 0 as n, coalesce(sum(size), 0)::float8 as bytes from gone`,
  `with gone as (delete from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_id = any($2::text[]) returning pg_column_size(c.*) as size)
   select count(*)::int as n, coalesce(sum(size), 0)::float8 as bytes from gone`,
];

const DELETE_HEADS = `
delete from {schema}.heads h where h.thread_id = $1 and h.checkpoint_ns <> ''
  and not exists (select 1 from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_ns = h.checkpoint_ns)`;

// What is being stored at this moment follows the head, and names the head's values or new ones.
const DELETE_VALUES = `
with used as materialized (
  select distinct c.checkpoint_ns as ns, v.key as channel, v.value as version
  from {schema}.checkpoints c cross join lateral jsonb_each_text(c.checkpoint -> 'channel_versions') v where c.thread_id = $1
),
gone as (
  delete from {schema}.checkpoint_blobs b where b.thread_id = $1
    and not exists (select 1 from used where used.ns = b.checkpoint_ns and used.channel = b.channel and used.version = b.version)
  returning pg_column_size(b.*) as size
)
select 0 as n, coalesce(sum(size), 0)::float8 as bytes from gone`;

interface Candidate {
  readonly id: string;
  readonly parent: string | null;
  readonly source: string | null;
}

/** The checkpoints that every one of the branches that are left went on from. */
function passedBy(candidates: readonly Candidate[], entries: readonly Omit<Candidate, "id">[]): Set<string> {
  const byId = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  const passes = new Map<string, number>();
  for (const entry of entries) {
    let { parent, source } = entry;
    for (let next = byId.get(parent ?? ""); next !== undefined; next = byId.get(parent ?? "")) {
      // A checkpoint of the loop holds what the tasks of its parent wrote: the graph went on from there.
      if (source === "loop") passes.set(next.id, (passes.get(next.id) ?? 0) + 1);
      ({ parent, source } = next);
    }
  }
  return new Set([...passes].filter(([, times]) => times === entries.length).map(([id]) => id));
}

const UNDONE = Symbol("nothing is to stay of it");

/** Removes what of a thread may go by the terms; a dry run undoes it again, so its numbers are exact. */
export async function pruneThread(
  database: PooledDatabase,
  threadId: string,
  terms: PruneTerms,
): Promise<PrunedThread> {
  let total: PrunedThread = { checkpoints: 0, steps: 0, bytes: 0, skipped: false };
  for (;;) {
    const { pruned, more } = await pruneSome(database, threadId, terms);
    const { checkpoints, steps, bytes } = total;
    total = {
      checkpoints: checkpoints + pruned.checkpoints,
      steps: steps + pruned.steps,
      bytes: bytes + pruned.bytes,
      skipped: pruned.skipped,
    };
    if (!more) return total;
  }
}

interface Some {
  readonly pruned: PrunedThread;
  readonly more: boolean;
}

async function pruneSome(database: PooledDatabase, threadId: string, terms: PruneTerms): Promise<Some> {
  let some: Some | undefined;
  const work = database.transaction(async (client) => {
    const send = sendOn(client, database);
    some = await pruneWithin(send, threadId, terms);
    if (terms.dryRun) throw UNDONE;
  });
  await work.catch((error: unknown) => {
    if (error !== UNDONE) throw error;
  });
  if (some === undefined) throw new Error("A prune ended without an answer.");
  return some;
}

async function pruneWithin(send: Send, threadId: string, terms: PruneTerms): Promise<Some> {
  const { keepLast, olderThanMs, dryRun } = terms;
  const nothing = { checkpoints: 0, steps: 0, bytes: 0, skipped: false };
  const lock = await lockForPrune(send, threadId, olderThanMs);
  if (lock.skip) return { pruned: { ...nothing, skipped: true }, more: false };
  const limit = dryRun ? null : BATCH;
  const candidates = (await send(CANDIDATES, [threadId, keepLast, olderThanMs ?? null, limit])).rows as Candidate[];
  const gone = await everythingOn(send, threadId, candidates);
  const steps = await pruneSteps(send, threadId, gone, lock.final);
  if (gone.length === 0) return { pruned: { ...nothing, steps }, more: false };
  const ids = gone.map(({ id }) => id);
  const answers = [];
  for (const text of DELETES) answers.push(await send(text, [threadId, ids]));
  await send(DELETE_HEADS, [threadId]);
  answers.push(await send(DELETE_VALUES, [threadId]));
  const counts = answers.flatMap(({ rows }) => rows as { n: number; bytes: number }[]);
  const checkpoints = counts.reduce((sum, { n }) => sum + n, 0);
  const bytes = counts.reduce((sum, { bytes: size }) => sum + size, await deleteUnreferenced(send, threadId));
  return { pruned: { checkpoints, steps, bytes, skipped: false }, more: candidates.length === limit };
}

/** The checkpoints of the root graph, and those of its subgraphs below them. */
async function everythingOn(
  send: Send,
  threadId: string,
  candidates: readonly Candidate[],
): Promise<readonly GoneCheckpoint[]> {
  if (candidates.length === 0) return [];
  const ids = candidates.map(({ id }) => id);
  const entries = (await send(ENTRIES, [threadId, ids])).rows as Omit<Candidate, "id">[];
  const passed = passedBy(candidates, entries);
  const inner = (await send(INNER, [threadId, ids])).rows as { id: string; root: string }[];
  return [
    ...ids.map((id) => ({ id, passed: passed.has(id) })),
    ...inner.map(({ id, root }) => ({ id, passed: passed.has(root) })),
  ];
}

const LONG_THREADS = `
select c.thread_id from {schema}.checkpoints c where c.checkpoint_ns = '' and c.thread_id > $1::text
group by c.thread_id having count(*) > $2::bigint or exists (
  select 1 from {schema}.steps s where s.thread_id = c.thread_id and s.base_pruned is not null)
order by c.thread_id limit $3`;

/** Threads that may have something to remove, after `after` in the order of their ids. */
export async function threadsToPrune(
  database: PooledDatabase,
  after: string,
  keepLast: number,
  limit: number,
): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("prune_threads", LONG_THREADS, [after, keepLast, limit]);
  return rows.map(({ thread_id }) => thread_id);
}
