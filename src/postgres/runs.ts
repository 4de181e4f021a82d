// The lease of a thread: one run at a time. The epoch fences: every claim, put and putWrites of a run checks it in
// its own transaction, so a run that lost its thread can change nothing, however late it wakes up.
import type { CancelRequest } from "../core/cancel.js";
import type { RecordedFailure } from "../core/errors.js";
import type { AcquireAnswer, Renewed, RunEnd, RunOf, RunPurpose, RunTicket } from "../core/ledger.js";
import { CANCEL_COLUMNS, type CancelColumns, cancelCameTooLate, finishCancel, toCancel } from "./cancels.js";
import { describeHolder, type Holder, isProvenDead } from "./holder.js";
import { errorJson } from "./outcomes.js";
import type { Database } from "./pool.js";

/** `cancel requested`: a run is still at work, and is being told. */
export type RunState = RunEnd | "running" | "cancel requested";

const ACQUIRE = `
with at as materialized (select {schema}.ledger_now() as now),
taken as (
  insert into {schema}.threads as t (thread_id, epoch, lease_until, holder, state, parent_thread_id, created_at, updated_at, graph, root_thread, ttl_ms)
  select $1::text, 1, now + make_interval(secs => $2::bigint / 1000.0), $3::jsonb, case when $5::boolean then 'running' else 'done' end, $8::text, now, now, $6::text, $7::text, $10::bigint from at
  where not exists (select from {schema}.threads p where p.thread_id = $8 and p.cancel_requested_at is not null)
  on conflict (thread_id) do update set epoch = t.epoch + 1, lease_until = excluded.lease_until,
    holder = excluded.holder, updated_at = excluded.updated_at,
    state = case when $5 then 'running' when t.cancel_requested_at is not null then 'cancelled' else t.state end,
    parent_thread_id = case when $5 then excluded.parent_thread_id else t.parent_thread_id end,
    error = case when $5 then null else t.error end,
    graph = coalesce($6, t.graph), root_thread = case when $5 then $7 else t.root_thread end, deleted_at = null, deleted_by = null,
    ttl_ms = coalesce(excluded.ttl_ms, t.ttl_ms)
  where (not $5 or t.cancel_requested_at is null) and (t.deleted_at is null or not $9::boolean)
    and (t.lease_until <= (select now from at) or t.epoch = $4::bigint or t.holder->>'runId' = $3::jsonb->>'runId')
  returning t.epoch, t.generation
),
released as (
  update {schema}.steps s set lease_until = at.now from taken, at
  where s.thread_id = $1 and s.state = 'RUNNING' and s.epoch = $4::bigint and s.lease_until > at.now
),
woken as (delete from {schema}.wakes w using taken where w.thread_id = $1 and $5)
select epoch, generation, $5 and exists (select from {schema}.starts where thread_id = $1 and taken_at is null) as ordered,
  exists (select from {schema}.forks where thread_id = $1) as forked from taken`;

const WHO_HOLDS = `
select t.epoch, t.holder, t.lease_until, t.state, t.deleted_at, t.deleted_by, ${CANCEL_COLUMNS}, -- Before PostgreSQL 17 nothing can be subtracted from minus infinity.
  case when isfinite(t.lease_until) then greatest(0, extract(epoch from t.lease_until - {schema}.ledger_now()) * 1000) else 0 end::float8 as left_ms
from {schema}.threads t where t.thread_id = $1`;

/** Takes the thread's lease, or tells who has it. A holder that is proven dead loses it at once. */
export async function acquireRun(
  database: Database,
  threadId: string,
  runId: string,
  leaseMs: number,
  purpose: RunPurpose = "run",
  of?: RunOf,
): Promise<AcquireAnswer> {
  const holder = JSON.stringify({ ...describeHolder(runId), ...(of?.addressed ? { addressed: true } : {}) });
  // A holder that died without a release, also one whose lease has run out since: the leases of its steps end with it.
  const [last] = await database.query<HeldRow>("who_holds", WHO_HOLDS, [threadId]);
  for (let deadEpoch = isProvenDead(last?.holder ?? undefined) ? (last?.epoch ?? null) : null; ; ) {
    const [taken]: TakenRow[] = await database.query("acquire", ACQUIRE, [
      threadId,
      leaseMs,
      holder,
      deadEpoch,
      purpose === "run",
      of?.graph ?? null,
      of?.rootThread ?? null,
      of?.parentThread ?? null,
      of?.goesOn ?? false,
      of?.ttlMs ?? null,
    ]);
    if (taken !== undefined) {
      return {
        ticket: { threadId, generation: taken.generation, epoch: BigInt(taken.epoch) },
        tookOver: deadEpoch !== null,
        ordered: taken.ordered,
        forked: taken.forked,
      };
    }
    const [held] = await database.query<HeldRow>("who_holds", WHO_HOLDS, [threadId]);
    const cancelled = purpose === "run" ? toCancel(held) : undefined;
    if (cancelled !== undefined) {
      await finishIfFree(database, threadId);
      return { cancelled };
    }
    const parent = of?.parentThread;
    const [around] = parent === undefined ? [] : await database.query<HeldRow>("who_holds", WHO_HOLDS, [parent]);
    const cancelledAround = toCancel(around);
    if (cancelledAround !== undefined) return { cancelled: cancelledAround };
    if (held?.deleted_at && of?.goesOn) return { deleted: { at: held.deleted_at, by: held.deleted_by ?? "" } };
    if (held === undefined || held.left_ms === 0) continue;
    if (held.epoch !== deadEpoch && isProvenDead(held.holder ?? undefined)) {
      deadEpoch = held.epoch;
      continue;
    }
    const { host = "?", pid = 0 } = held.holder ?? {};
    return { busy: { leaseUntil: held.lease_until, leftMs: held.left_ms, host, pid } };
  }
}

/** A cancelled thread whose run is gone is at its end; so is one whose holder is proven dead. */
export async function finishIfFree(database: Database, threadId: string): Promise<boolean> {
  const [held] = await database.query<HeldRow>("who_holds", WHO_HOLDS, [threadId]);
  return finishCancel(database, threadId, isProvenDead(held?.holder ?? undefined) ? held?.epoch : undefined);
}

interface TakenRow {
  readonly epoch: string;
  readonly generation: number;
  readonly ordered: boolean;
  readonly forked: boolean;
}

interface HeldRow extends CancelColumns {
  readonly epoch: string;
  readonly holder: Holder | null;
  readonly state: string;
  readonly deleted_at: Date | null;
  readonly deleted_by: string | null;
  readonly lease_until: Date;
  readonly left_ms: number;
}

const RENEW = `
update {schema}.threads t set lease_until = at.now + make_interval(secs => $3::bigint / 1000.0)
from (select {schema}.ledger_now() as now) at where t.thread_id = $1 and t.epoch = $2 and t.lease_until > at.now
returning ${CANCEL_COLUMNS}, (select (extract(epoch from b.deadline - at.now) * 1000)::float8 from {schema}.budgets b
  where b.scope = t.thread_id and not b.wrapping_up) as deadline_in_ms`;

/** False when the lease is over or another's: losing is final (G3). A run that was cancelled keeps it until it has stopped. */
export async function renewRun(database: Database, ticket: RunTicket, leaseMs: number): Promise<false | Renewed> {
  const values = [ticket.threadId, ticket.epoch, leaseMs];
  const [row] = await database.query<RenewedRow>("renew_run", RENEW, values);
  return row === undefined ? false : { cancelled: toCancel(row), deadlineInMs: row.deadline_in_ms ?? undefined };
}

interface RenewedRow extends CancelColumns {
  readonly deadline_in_ms: number | null;
}

/** Why a thread is due whose worker was told to stop. */
export const HANDED_OVER = "its worker was stopped";

// An undo from outside leaves a cancelled thread cancelled. $5: it is due again at once. A wake that was left alone because the
// thread was busy is free again.
const RELEASE = `
with at as materialized (select {schema}.ledger_now() as now),
released as (
  update {schema}.threads t set lease_until = '-infinity', holder = null, updated_at = at.now,
    deaths = case when $3::text is null then t.deaths else 0 end,
    state = case when t.cancel_requested_at is not null and $3 = 'done' then 'cancelled' else coalesce($3::text, t.state) end,
    error = case when $3 is null then t.error else $4::jsonb end
  from at where t.thread_id = $1 and t.epoch = $2 and (t.cancel_requested_at is null or t.state <> 'running')
  returning t.thread_id
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason) select released.thread_id, at.now, $5::text from released, at where $5::text is not null
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason,
    claimed_until = '-infinity', tries = 0
),
-- What a worker that stops had handed over came to its end all the same.
kept as (
  delete from {schema}.wakes w using released
  where w.thread_id = released.thread_id and $3 in ('done', 'failed') and w.reason = '${HANDED_OVER}'
),
freed as (
  update {schema}.wakes w set claimed_until = '-infinity', tries = 0 from released
  where w.thread_id = released.thread_id and $5::text is null and not ($3 in ('done', 'failed') and w.reason = '${HANDED_OVER}')
)
select 1 from released`;

/** Ends the run and gives the thread free. Does nothing when the thread is another's by now. */
export async function releaseRun(
  database: Database,
  ticket: RunTicket,
  end: RunEnd | undefined,
  failure?: RecordedFailure,
  wake?: string,
): Promise<void> {
  const values = [ticket.threadId, ticket.epoch, end ?? null, errorJson(failure), wake ?? null];
  const released = await database.query("release_run", RELEASE, values);
  if (released.length > 0) return;
  // Not ours any more, or cancelled.
  if (end === "done" && (await cancelCameTooLate(database, ticket))) return;
  await finishCancel(database, ticket.threadId, ticket.epoch);
}

const CLOSE = `
update {schema}.threads t set closed_at = coalesce(t.closed_at, at.now)
from (select {schema}.ledger_now() as now) at where t.thread_id = $1 and t.epoch = $2`;

/** No write of this thread is claimed any more. */
export async function closeToWrites(database: Database, ticket: RunTicket): Promise<void> {
  await database.query("close_to_writes", CLOSE, [ticket.threadId, ticket.epoch]);
}

const WAKE = `
insert into {schema}.wakes as w (thread_id, due_at, reason) select $1::text, $2::timestamptz, $3::text
where not exists (select 1 from {schema}.threads t where t.thread_id = $1 and (t.deleted_at is not null or t.delete_requested_at is not null))
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason`;

/** The thread should run again from then on. One that is deleted stays so. */
export async function wakeThread(database: Database, threadId: string, dueAt: Date, reason: string): Promise<void> {
  await database.query("wake", WAKE, [threadId, dueAt, reason]);
}

export async function ledgerNow(database: Database): Promise<Date> {
  const [row] = await database.query<{ now: Date }>("now", "select {schema}.ledger_now() as now", []);
  if (row === undefined) throw new Error("PostgreSQL answered a select without a row.");
  return row.now;
}

export interface ThreadSummary {
  readonly threadId: string;
  readonly state: RunState;
  readonly steps: number;
  readonly open: number;
  readonly costNanoUsd: bigint;
  readonly unpricedCalls: number;
  readonly updatedAt: Date;
  readonly holder: Holder | undefined;
  readonly error: RecordedFailure | undefined;
  readonly dueAt: Date | undefined;
  /** Why the thread should run again at `dueAt`. */
  readonly dueReason: string | undefined;
  /** Who stopped the thread, or is stopping it. */
  readonly cancel: CancelRequest | undefined;
}

/** Of `threads t` at `at (now)`. One whose lease is over without a release died: it is due, because the next run goes on with it. */
export const SHOWN_STATE = `case when t.state <> 'running' then t.state
  when t.lease_until > at.now then case when t.cancel_requested_at is null then 'running' else 'cancel requested' end
  else case when t.cancel_requested_at is null then 'due' else 'cancelled' end end`;

// The threads are chosen before their steps are looked at: those of all threads would be counted else.
const THREADS = `
with at as materialized (select {schema}.ledger_now() as now),
chosen as materialized (
  select t.* from (
    select t.thread_id, ${CANCEL_COLUMNS}, ${SHOWN_STATE} as state, t.updated_at, t.holder, t.error
    from {schema}.threads t, at where ($1::text is null or t.thread_id = $1) and t.deleted_at is null
  ) t
  where $3::text is null or t.state = $3 order by t.updated_at desc limit $2 offset $4
)
select t.*, w.due_at, w.reason as due_reason, coalesce(s.steps, 0)::int as steps, coalesce(s.open, 0)::int as open,
  coalesce(s.cost, 0)::text as cost, coalesce(s.unpriced, 0)::int as unpriced
from chosen t
left join {schema}.wakes w using (thread_id)
left join lateral (
  select count(*) as steps, sum(cost_nano_usd) as cost,
    count(*) filter (where model is not null and cost_nano_usd is null) as unpriced,
    count(*) filter (where state in ('RUNNING', 'NEEDS_RECONCILIATION', 'WAITING_HUMAN', 'RETRY_SCHEDULED')) as open
  from {schema}.steps where thread_id = t.thread_id
) s on true
order by t.updated_at desc`;

interface ThreadRow extends CancelColumns {
  readonly thread_id: string;
  readonly state: RunState;
  readonly updated_at: Date;
  readonly holder: Holder | null;
  readonly error: RecordedFailure | null;
  readonly due_at: Date | null;
  readonly due_reason: string | null;
  readonly steps: number;
  readonly open: number;
  readonly cost: string;
  readonly unpriced: number;
}

/** Threads with what their runs came to, the newest first; one thread when it is named. */
export async function listThreads(
  database: Database,
  options: { threadId?: string; state?: RunState; limit: number; offset?: number },
): Promise<ThreadSummary[]> {
  const { threadId, state, limit, offset = 0 } = options;
  const rows = await database.query<ThreadRow>("threads", THREADS, [threadId ?? null, limit, state ?? null, offset]);
  return rows.map((row) => ({
    threadId: row.thread_id,
    state: row.state,
    steps: row.steps,
    open: row.open,
    costNanoUsd: BigInt(row.cost),
    unpricedCalls: row.unpriced,
    updatedAt: row.updated_at,
    holder: row.holder ?? undefined,
    error: row.error ?? undefined,
    dueAt: row.due_at ?? undefined,
    dueReason: row.due_reason ?? undefined,
    cancel: toCancel(row),
  }));
}
