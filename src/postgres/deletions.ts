// Deleting threads (G25): the request stops the thread and stays; the rows go in one transaction once no run has the thread
// and nothing of it is in doubt. What is left is the thread's generation and epoch, and that its writes were made.
import { plainText } from "../core/failure.js";
import { FORGET_ARTIFACTS } from "./artifacts.js";
import { AMOUNTS } from "./budgetRows.js";
import type { Database } from "./pool.js";
import type { Send } from "./send.js";

/** Why a thread that is being deleted takes nothing any more. */
export const BEING_DELETED = "it is being deleted";

/** `unknown`: the ledger knows no such thread. `gone`: it was deleted, and nothing of it is there. */
export type Place = "here" | "gone" | "unknown";

// A thread that only a checkpointer knows has no row yet.
const PLACE = `
with at as materialized (select {schema}.ledger_now() as now),
stored as materialized (
  select 1 from {schema}.checkpoints c where c.thread_id = $1::text union all select 1 from {schema}.checkpoint_writes w where w.thread_id = $1 limit 1
),
made as (
  insert into {schema}.threads (thread_id, state, created_at, updated_at) select $1, 'done', at.now, at.now from at, stored
  on conflict do nothing
)
select exists (select 1 from stored) as stored, t.thread_id is not null as known, t.deleted_at is not null as deleted
from (select 1) one left join {schema}.threads t on t.thread_id = $1`;

const REQUEST = `
with locked as materialized (select t.thread_id from {schema}.threads t where t.thread_id = $1::text for update of t),
at as materialized (select {schema}.ledger_now() as now from (select count(*) from locked) l),
asked as (
  update {schema}.threads t set updated_at = at.now, cancel_reason = '${BEING_DELETED}',
    delete_requested_at = coalesce(t.delete_requested_at, at.now), delete_requested_by = coalesce(t.delete_requested_by, $2::text),
    cancel_requested_at = coalesce(t.cancel_requested_at, at.now), cancel_requested_by = coalesce(t.cancel_requested_by, $2),
    state = case when t.state = 'running' and t.lease_until > at.now then 'running' else 'cancelled' end
  from at where t.thread_id = $1 returning t.thread_id
)
delete from {schema}.wakes w using asked where w.thread_id = asked.thread_id`;

/** Stops the thread for good: from then on no run takes it, and it is deleted as soon as it can be. */
export async function requestDeletion(database: Database, threadId: string, by: string): Promise<Place> {
  const [row] = await database.query<PlaceRow>("delete_place", PLACE, [threadId]);
  if (row?.stored !== true && row?.known !== true) return "unknown";
  if (!row.stored && row.deleted) return "gone";
  await database.query("delete_request", REQUEST, [threadId, plainText(by, 200)]);
  return "here";
}

interface PlaceRow {
  readonly stored: boolean;
  readonly known: boolean;
  readonly deleted: boolean;
}

// Those that wait for a person are looked at by nobody else: they must not stand in the way of the others.
const WAITING = `
with at as materialized (select {schema}.ledger_now() as now)
select t.thread_id from {schema}.threads t, at where t.delete_requested_at is not null and t.lease_until <= at.now
  and not exists (select 1 from {schema}.steps s where s.thread_id = t.thread_id and s.doubt_since is not null)
order by t.delete_requested_at limit $1`;

// One that a run takes at this moment is looked at again with its lock held, and is left.
const EXPIRE = `
with at as materialized (select {schema}.ledger_now() as now)
update {schema}.threads t set updated_at = at.now, state = 'cancelled', cancel_reason = '${BEING_DELETED}',
  delete_requested_at = at.now, delete_requested_by = 'system:ttl',
  cancel_requested_at = coalesce(t.cancel_requested_at, at.now), cancel_requested_by = coalesce(t.cancel_requested_by, 'system:ttl')
from at where t.ttl_ms is not null and t.state in ('done', 'cancelled') and t.lease_until <= at.now and t.deleted_at is null
  and t.delete_requested_at is null and t.updated_at <= at.now - make_interval(secs => t.ttl_ms / 1000.0)
  and not exists (select 1 from {schema}.wakes w where w.thread_id = t.thread_id)
  and not exists (select 1 from {schema}.approvals a where a.thread_id = t.thread_id and a.status = 'pending')
  and not exists (select 1 from {schema}.steps s where s.thread_id = t.thread_id and s.doubt_since is not null)`;

/** Has threads deleted that came to their end as long ago as they are to be kept. */
export async function expireThreads(database: Database): Promise<void> {
  await database.query("delete_expired", EXPIRE, []);
}

/** Threads that waited to be deleted, and can be now. */
export async function threadsToDelete(database: Database, limit: number): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("delete_waiting", WAITING, [limit]);
  return rows.map(({ thread_id }) => thread_id);
}

/** Threads that ran inside a thread, and are threads of their own. */
export async function innerThreadsOf(database: Database, threadId: string): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>(
    "delete_inner",
    "select thread_id from {schema}.threads where parent_thread_id = $1 and deleted_at is null order by created_at",
    [threadId],
  );
  return rows.map(({ thread_id }) => thread_id);
}

/** What keeps a thread from being deleted now. */
export interface Hindrance {
  readonly running: boolean;
  /** Keys of the writes that may have happened, or have happened twice and nobody has said so. */
  readonly inDoubt: readonly string[];
}

const LOCK = `
select t.delete_requested_at is not null as asked, t.lease_until > (select {schema}.ledger_now()) as live
from {schema}.threads t where t.thread_id = $1::text for update of t`;

const IN_DOUBT = `
select encode(s.key, 'hex') as key from {schema}.steps s
where s.thread_id = $1 and (s.doubt_since is not null or (s.state = 'RUNNING' and s.effect = 'write')
  or exists (select 1 from {schema}.late_receipts l where l.key = s.key and l.differs and l.acknowledged_by is null))
order by s.seq`;

/**
 * Locks the thread for the rest of the transaction: no step of it is claimed and no checkpoint of it is stored meanwhile.
 * "nobody asked": it is gone already.
 */
export async function lockForDeletion(send: Send, threadId: string): Promise<Hindrance | "nobody asked" | undefined> {
  const [thread] = (await send(LOCK, [threadId])).rows as { asked: boolean; live: boolean }[];
  if (thread?.asked !== true) return "nobody asked";
  const inDoubt = ((await send(IN_DOUBT, [threadId])).rows as { key: string }[]).map(({ key }) => key);
  return thread.live || inDoubt.length > 0 ? { running: thread.live, inDoubt } : undefined;
}

const KEYS = "(select s.key from {schema}.steps s where s.thread_id = $1)";
const APPROVALS = "(select a.id from {schema}.approvals a where a.thread_id = $1)";
const SCOPES = "(select b.scope from {schema}.budgets b where b.thread_id = $1)";

// The budgets of the threads around it have what its calls had reserved counted as spent, as for any run that is gone.
const SETTLE_RESERVED = `
with gone as (delete from {schema}.reservations r where r.thread_id = $1 returning *),
held as (
  select x.scope, ${AMOUNTS.map((name) => `sum(gone.${name})::bigint as ${name}`).join(", ")}
  from gone, unnest(gone.scopes) x (scope) where gone.settled_at is null group by x.scope
),
b as (select b.scope from {schema}.budgets b join held using (scope) order by b.depth, b.scope for update of b)
update {schema}.budgets u set ${AMOUNTS.map(
  (name) => `reserved_${name} = u.reserved_${name} - held.${name}, spent_${name} = u.spent_${name} + held.${name}`,
).join(", ")} from held, b where u.scope = held.scope and b.scope = u.scope`;

const KEEP_FOR_AUDIT = `
insert into {schema}.deleted_effects as d (key, thread_id, generation, name, kind, state, attempt, started_at, ended_at, deleted_at)
select s.key, s.thread_id, s.generation, s.name, s.kind, s.state, s.attempt, s.started_at, s.ended_at, {schema}.ledger_now()
from {schema}.steps s where s.thread_id = $1 and s.effect = 'write' and s.attempt > 0
on conflict (key) do nothing`;

/** In this order: what is found by the rows of another table goes before them. */
const DELETES = [
  SETTLE_RESERVED,
  KEEP_FOR_AUDIT,
  `delete from {schema}.alerts where subject = $1 or subject in (select encode(k.key, 'hex') from ${KEYS} k)`,
  `delete from {schema}.step_changes where key in ${KEYS}`,
  `delete from {schema}.late_receipts where key in ${KEYS}`,
  "delete from {schema}.steps where thread_id = $1",
  "delete from {schema}.outbox where thread_id = $1",
  `delete from {schema}.approval_events where approval_id in ${APPROVALS}`,
  "delete from {schema}.approvals where thread_id = $1",
  `delete from {schema}.budget_changes where scope in ${SCOPES}`,
  `delete from {schema}.budget_events where scope in ${SCOPES}`,
  "delete from {schema}.budgets where thread_id = $1",
  "delete from {schema}.budget_positions where thread_id = $1",
  "delete from {schema}.forks where thread_id = $1",
  "delete from {schema}.thread_events where thread_id = $1",
  ...FORGET_ARTIFACTS,
  "delete from {schema}.pins where thread_id = $1",
  "delete from {schema}.pin_events where thread_id = $1",
  "delete from {schema}.heads where thread_id = $1",
  "delete from {schema}.wakes where thread_id = $1",
  `update {schema}.starts set deleted_thread_id = thread_id, thread_id = null, input = '', input_hash = '', tenant = null
   where thread_id = $1 and event_id is not null`,
  "delete from {schema}.starts where thread_id = $1",
];

const TOMBSTONE = `
update {schema}.threads t set generation = t.generation + 1, epoch = t.epoch + 1, state = 'done',
  deleted_at = at.now, deleted_by = t.delete_requested_by, created_at = at.now, updated_at = at.now,
  lease_until = '-infinity', holder = null, error = null, closed_at = null, graph = null, root_thread = null,
  parent_thread_id = null, ttl_ms = null, swept_epoch = null, deaths = 0, delete_requested_at = null, delete_requested_by = null,
  cancel_requested_at = null, cancel_requested_by = null, cancel_reason = null
from (select {schema}.ledger_now() as now) at where t.thread_id = $1`;

/** Removes what the ledger has of a locked thread; answers with how many effects are kept for audit. */
export async function deleteLedgerRows(send: Send, threadId: string): Promise<number> {
  let kept = 0;
  for (const text of DELETES) {
    const { rowCount } = await send(text, [threadId]);
    if (text === KEEP_FOR_AUDIT) kept = rowCount ?? 0;
  }
  await send(TOMBSTONE, [threadId]);
  return kept;
}
