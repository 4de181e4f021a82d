// Cancelling threads. The request is a fact: from its commit on no step of the run is claimed and no checkpoint of it is
// stored. The thread is cancelled when nobody is at work on it any more, and what may have happened stays in doubt (G9).
import { type CancelRequest, RUN_CANCELLED } from "../core/cancel.js";
import { plainText } from "../core/failure.js";
import type { Refused, RunTicket } from "../core/ledger.js";
import { OPEN_OR_UNUSED } from "./approvalRows.js";
import type { Database } from "./pool.js";

/** Whether a run still has its thread `t`, and may go on. Work from outside the graph, such as an undo, may also then. */
export function isHeld(epoch: string, now: string): string {
  return `t.epoch = ${epoch}::bigint and t.lease_until > ${now} and (t.cancel_requested_at is null or t.state <> 'running')`;
}

export const CANCEL_COLUMNS = "t.cancel_requested_at, t.cancel_requested_by, t.cancel_reason";

export interface CancelColumns {
  readonly cancel_requested_at: Date | null;
  readonly cancel_requested_by: string | null;
  readonly cancel_reason: string | null;
}

export function toCancel(row: CancelColumns | undefined): CancelRequest | undefined {
  if (row === undefined || row.cancel_requested_at === null) return undefined;
  return { at: row.cancel_requested_at, by: row.cancel_requested_by ?? "", reason: row.cancel_reason ?? undefined };
}

const CANCEL_OF_RUN = `select ${CANCEL_COLUMNS} from {schema}.threads t where t.thread_id = $1 and t.epoch = $2 and t.state = 'running'`;

/** Whether somebody has cancelled the run. */
export async function cancelOfRun(database: Database, ticket: RunTicket): Promise<CancelRequest | undefined> {
  const [row] = await database.query<CancelColumns>("cancel_of_run", CANCEL_OF_RUN, [ticket.threadId, ticket.epoch]);
  return toCancel(row);
}

/** Why a statement found the thread not held. */
export async function whyRefused(database: Database, ticket: RunTicket): Promise<Refused> {
  const cancelled = await cancelOfRun(database, ticket);
  return cancelled === undefined ? { lost: "lease" } : { cancelled };
}

// The threads that run inside are cancelled with it, also those that wait for a person: what they ask nobody is to answer any more.
// What has come to its end is left alone, as long as nothing is due on it.
// The clock is read when the rows are locked: no claim that got in before has a later time.
const REQUEST = `
with recursive below as (
  select f.thread_id from {schema}.threads f
  where f.thread_id = $1::text and (f.state <> 'done' or exists (select from {schema}.wakes w where w.thread_id = $1))
  union
  select t.thread_id from below join {schema}.threads t on t.parent_thread_id = below.thread_id where t.state in ('running', 'waiting', 'due')
),
locked as materialized (
  select t.thread_id from {schema}.threads t where t.thread_id in (select thread_id from below) order by t.thread_id for update of t
),
at as materialized (select {schema}.ledger_now() as now from (select count(*) from locked) l),
asked as (
  update {schema}.threads t set cancel_requested_at = at.now, cancel_requested_by = $2::text, cancel_reason = $3::text, updated_at = at.now,
    state = case when t.state = 'running' and t.lease_until > at.now then 'running' else 'cancelled' end
  from at where t.thread_id in (select thread_id from locked) and t.cancel_requested_at is null
  returning t.thread_id
),
told as (
  insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at)
  select asked.thread_id, 'cancel requested', $2, $3, at.now from asked, at
),
woken as (delete from {schema}.wakes w using asked where w.thread_id = asked.thread_id)
select asked.thread_id from asked`;

/** Asks for the thread, and those inside it, to be cancelled; answers with those that were not before. */
export async function requestCancel(
  database: Database,
  threadId: string,
  by: string,
  reason: string | undefined,
): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("cancel", REQUEST, [
    threadId,
    plainText(by, 200),
    reason === undefined ? null : plainText(reason, 500),
  ]);
  return rows.map(({ thread_id }) => thread_id);
}

// $2: the epoch of a run that is over: our own at its end, or a dead process's.
const FINISH = `
with at as materialized (select {schema}.ledger_now() as now),
ended as (
  update {schema}.threads t set state = 'cancelled', updated_at = at.now,
    lease_until = case when t.state = 'running' then '-infinity' else t.lease_until end,
    holder = case when t.state = 'running' then null else t.holder end
  from at where t.thread_id = $1 and t.cancel_requested_at is not null
    and (t.state <> 'running' or t.lease_until <= at.now or t.epoch = $2::bigint)
  returning t.thread_id, t.cancel_requested_by as by_whom, t.cancel_reason as reason
),
dropped as (
  update {schema}.steps s set state = 'CANCELLED', due_at = null, lease_until = null, ended_at = at.now, changes = s.changes + 1,
    error = jsonb_build_object('name', 'Cancelled', 'code', '${RUN_CANCELLED}', 'message', 'Its thread was cancelled by ' || ended.by_whom || '.')
  from ended, at where s.thread_id = ended.thread_id and s.doubt_since is null and (s.state in ('READY', 'RETRY_SCHEDULED', 'WAITING_HUMAN')
    or (s.state = 'RUNNING' and s.effect = 'read' and (s.lease_until <= at.now or s.epoch = $2)))
  returning s.key, s.attempt, s.changes, s.state
),
doubtful as (
  update {schema}.steps s set state = 'NEEDS_RECONCILIATION', doubt_since = coalesce(s.doubt_since, at.now), changes = s.changes + 1,
    first_unresolved_send_at = coalesce(s.first_unresolved_send_at, s.claimed_at),
    could_send_until = greatest(s.could_send_until, least(s.lease_until, at.now)), lease_until = null
  from ended, at where s.thread_id = ended.thread_id and s.effect = 'write' and s.state = 'RUNNING' and (s.lease_until <= at.now or s.epoch = $2)
  returning s.key, s.attempt, s.changes, s.state
),
unasked as (
  update {schema}.approvals a set status = 'cancelled' from ended where a.thread_id = ended.thread_id and ${OPEN_OR_UNUSED} returning a.id
),
told_approvals as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select unasked.id, 'cancelled', ended.by_whom, 'its thread was cancelled', at.now from unasked, ended, at
),
told_steps as (
  insert into {schema}.step_changes (key, n, attempt, to_state, actor, reason, at)
  select left_.key, left_.changes, left_.attempt, left_.state, ended.by_whom, coalesce('cancelled: ' || ended.reason, 'cancelled'), at.now
  from (select * from dropped union all select * from doubtful) left_, ended, at
),
told as (
  insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at)
  select ended.thread_id, 'cancelled', ended.by_whom, ended.reason, at.now from ended, at
  where not exists (select from {schema}.thread_events e where e.thread_id = ended.thread_id and e.kind = 'cancelled'
    and e.id > (select max(r.id) from {schema}.thread_events r where r.thread_id = e.thread_id and r.kind = 'cancel requested'))
),
woken as (delete from {schema}.wakes w using ended where w.thread_id = ended.thread_id)
select 1 from ended`;

/** Nobody is at work: the thread is cancelled, and what of it was not sent is never sent. False while somebody may be. */
export async function finishCancel(database: Database, threadId: string, epoch?: bigint | string): Promise<boolean> {
  return (await database.query("finish_cancel", FINISH, [threadId, epoch ?? null])).length > 0;
}

const TOO_LATE = `
with at as materialized (select {schema}.ledger_now() as now),
ended as (
  update {schema}.threads t set state = 'done', lease_until = '-infinity', holder = null, error = null, updated_at = at.now,
    cancel_requested_at = null, cancel_requested_by = null, cancel_reason = null
  from at, (select f.cancel_requested_by as by_whom, f.cancel_reason as reason from {schema}.threads f where f.thread_id = $1) asked
  where t.thread_id = $1 and t.epoch = $2 and t.cancel_requested_at is not null and t.delete_requested_at is null
  returning t.thread_id, asked.by_whom, asked.reason
)
insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at)
select ended.thread_id, 'cancel came too late', ended.by_whom, ended.reason, at.now from ended, at returning 1`;

/** The graph had come to its end when it was cancelled. False when that changes nothing: the thread is to be deleted. */
export async function cancelCameTooLate(database: Database, ticket: RunTicket): Promise<boolean> {
  return (await database.query("cancel_too_late", TOO_LATE, [ticket.threadId, ticket.epoch])).length > 0;
}

const LIFT = `
with recursive at as materialized (select {schema}.ledger_now() as now),
below as (
  select $1::text as thread_id, (select f.cancel_requested_at from {schema}.threads f where f.thread_id = $1) as cancelled_at
  union
  select t.thread_id, below.cancelled_at from below
  join {schema}.threads t on t.parent_thread_id = below.thread_id and t.cancel_requested_at = below.cancelled_at
),
lifted as (
  update {schema}.threads t set state = 'due', error = null, updated_at = at.now,
    cancel_requested_at = null, cancel_requested_by = null, cancel_reason = null
  from at where t.thread_id in (select thread_id from below) and t.cancel_requested_at is not null and t.state <> 'running'
    and t.delete_requested_at is null
  returning t.thread_id
),
ready as (
  update {schema}.steps s set state = 'READY', ended_at = null, error = null, changes = s.changes + 1 from lifted
  where s.thread_id = lifted.thread_id and s.state = 'CANCELLED' and s.error->>'code' = '${RUN_CANCELLED}'
  returning s.key, s.attempt, s.changes
),
told_steps as (
  insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
  select ready.key, ready.changes, ready.attempt, 'CANCELLED', 'READY', $2::text, $3::text, at.now from ready, at
),
told as (
  insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at) select lifted.thread_id, 'cancel lifted', $2, $3, at.now from lifted, at
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason) select lifted.thread_id, at.now, 'its cancel was lifted' from lifted, at
  where lifted.thread_id = $1
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
)
select (select count(*) from lifted)::int as lifted, (select array_agg(encode(key, 'hex')) from ready) as ready`;

/** Lets a cancelled thread, and those that were cancelled with it, go on. Undefined when it is not cancelled, or not yet. */
export async function liftCancel(
  database: Database,
  threadId: string,
  by: string,
  reason: string,
): Promise<string[] | undefined> {
  const [row] = await database.query<{ lifted: number; ready: string[] | null }>("lift_cancel", LIFT, [
    threadId,
    plainText(by, 200),
    plainText(reason, 500),
  ]);
  return row === undefined || row.lifted === 0 ? undefined : (row.ready ?? []);
}

export interface ThreadEvent {
  readonly kind: string;
  readonly by: string;
  readonly reason: string | undefined;
  readonly at: Date;
}

/** What people did to a thread as a whole, in order. */
export async function threadEvents(database: Database, threadId: string): Promise<ThreadEvent[]> {
  const rows = await database.query<{ kind: string; by_whom: string; reason: string | null; at: Date }>(
    "thread_events",
    "select kind, by_whom, reason, at from {schema}.thread_events where thread_id = $1 order by id",
    [threadId],
  );
  return rows.map(({ kind, by_whom, reason, at }) => ({ kind, by: by_whom, reason: reason ?? undefined, at }));
}
