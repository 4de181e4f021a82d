// Due work: wakes are claimed for a while and never deleted here (G15: the run that starts does), runs that died are
// found once each, and the last sweep is noted. Any number of processes may do all of this at once.
import { hostname } from "node:os";
import { type Holder, isProvenDead } from "./holder.js";
import type { Database } from "./pool.js";
import { HANDED_OVER } from "./runs.js";

/** A thread that somebody should run now. */
export interface DueThread {
  /** Whose wake it is. */
  readonly wakeOf: string;
  /** What is to be run: the outermost thread, where `wakeOf` ran inside another one. */
  readonly threadId: string;
  /** Undefined for a thread that no run of this version has started. */
  readonly graph: string | undefined;
  readonly reason: string;
  /** For how long it has been due. */
  readonly lateMs: number;
  /** A run holds the thread, by its lease. */
  readonly held: boolean;
}

export interface DueRequest {
  readonly limit: number;
  readonly by: string;
  /** How long the first claim lasts. */
  readonly claimMs: number;
  /** The graphs whose threads are wanted; undefined: any. Several cannot tell whose a thread without a name is. */
  readonly graphs: readonly string[] | undefined;
  /** Threads that this worker runs already. */
  readonly except: readonly string[];
}

// The clock is read once: compared as a value, the index on due_at can be used. A claim that led to no run is followed
// by a longer one, up to 64 times as long.
const CLAIM = `
with at as materialized (select {schema}.ledger_now() as now),
due as materialized (
  select w.thread_id, coalesce(t.root_thread, w.thread_id) as target, r.graph, r.lease_until > (select now from at) as held
  from {schema}.wakes w left join {schema}.threads t on t.thread_id = w.thread_id
  left join {schema}.threads r on r.thread_id = coalesce(t.root_thread, w.thread_id)
  where w.due_at <= (select now from at) and w.claimed_until <= (select now from at)
    and ($4::text[] is null or r.graph = any($4) or (r.graph is null and cardinality($4) = 1)) and not coalesce(t.root_thread, w.thread_id) = any($5::text[])
  order by w.due_at limit $1 for update of w skip locked
)
update {schema}.wakes w set claimed_by = $2, tries = w.tries + 1,
  claimed_until = at.now + make_interval(secs => $3::bigint * power(2, least(w.tries, 6)) / 1000.0)
from due, at where w.thread_id = due.thread_id
returning w.thread_id, due.target, due.graph, w.reason, extract(epoch from at.now - w.due_at)::float8 * 1000 as late_ms, coalesce(due.held, false) as held`;

/** Takes wakes that are due in hand, the oldest first. Rows that another worker is taking are passed over. */
export async function claimDue(database: Database, request: DueRequest): Promise<DueThread[]> {
  const { limit, by, claimMs, graphs, except } = request;
  const rows = await database.query<{
    thread_id: string;
    target: string;
    graph: string | null;
    reason: string;
    late_ms: number;
    held: boolean;
  }>("claim_due", CLAIM, [limit, by, claimMs, graphs ?? null, except]);
  return rows
    .map((row) => ({
      wakeOf: row.thread_id,
      threadId: row.target,
      graph: row.graph ?? undefined,
      reason: row.reason,
      lateMs: row.late_ms,
      held: row.held,
    }))
    .sort((a, b) => b.lateMs - a.lateMs);
}

const DEFER = `
update {schema}.wakes w set claimed_until = at.now + make_interval(secs => $3::bigint / 1000.0), tries = 0
from (select {schema}.ledger_now() as now) at where w.thread_id = $1 and w.claimed_by = $2`;

/** Leaves a claimed wake alone for so long: its thread is busy. The end of that run brings it back sooner. */
export async function deferWake(database: Database, wakeOf: string, by: string, ms: number): Promise<void> {
  await database.query("defer_wake", DEFER, [wakeOf, by, Math.max(0, Math.ceil(ms))]);
}

/** Forgets a claimed wake that nothing can be done about. */
export async function dropWake(database: Database, wakeOf: string, by: string): Promise<void> {
  await database.query("drop_wake", "delete from {schema}.wakes where thread_id = $1 and claimed_by = $2", [
    wakeOf,
    by,
  ]);
}

const NEXT = `
with at as materialized (select {schema}.ledger_now() as now)
select (extract(epoch from min(greatest(w.due_at, w.claimed_until)) - (select now from at)) * 1000)::float8 as ms
from (select due_at, claimed_until from {schema}.wakes
  where due_at > (select now from at) or claimed_until > (select now from at) order by due_at limit 100) w`;

/** How long until the next wake is due, as far as it is soon; undefined when there is none. */
export async function nextDueMs(database: Database): Promise<number | undefined> {
  const [row] = await database.query<{ ms: number | null }>("next_due", NEXT, []);
  return row?.ms ?? undefined;
}

const STRANGERS = `
with at as materialized (select {schema}.ledger_now() as now)
select distinct on (t.graph) t.graph, t.thread_id from {schema}.wakes w
join {schema}.threads i on i.thread_id = w.thread_id
join {schema}.threads t on t.thread_id = coalesce(i.root_thread, i.thread_id)
where w.due_at <= (select now from at) - interval '1 second' and t.graph is not null and not t.graph = any($1::text[])
order by t.graph, w.due_at limit 20`;

/** Graphs that have threads due and are not among `graphs`, with one of their threads each. */
export async function strangers(
  database: Database,
  graphs: readonly string[],
): Promise<{ graph: string; threadId: string }[]> {
  const rows = await database.query<{ graph: string; thread_id: string }>("due_strangers", STRANGERS, [graphs]);
  return rows.map(({ graph, thread_id }) => ({ graph, threadId: thread_id }));
}

const HOLDERS_HERE = `
select holder - 'runId' as holder, array_agg(thread_id) as threads, array_agg(epoch::text) as epochs from {schema}.threads
where state = 'running' and lease_until > {schema}.ledger_now() and holder->>'host' = $1 group by 1`;

const END_LEASES = `
update {schema}.threads t set lease_until = at.now from (select {schema}.ledger_now() as now) at, unnest($1::text[], $2::bigint[]) as dead (thread_id, epoch)
where t.thread_id = dead.thread_id and t.epoch = dead.epoch and t.state = 'running'`;

// A run that died is found once. Runs of one thread that keep dying are woken later and later: what kills its worker
// must not kill all of them at once.
const DEAD = `
with at as materialized (select {schema}.ledger_now() as now),
dead as materialized (
  select thread_id from {schema}.threads where state = 'running' and lease_until <= (select now from at) and swept_epoch is distinct from epoch
  limit 1000 for update skip locked
),
noted as (
  update {schema}.threads t set swept_epoch = t.epoch, deaths = t.deaths + 1 from dead where t.thread_id = dead.thread_id
  returning t.thread_id, t.deaths, t.root_thread
)
insert into {schema}.wakes as w (thread_id, due_at, reason)
select noted.thread_id, at.now + make_interval(secs => least(power(2, least(noted.deaths, 10) - 1) - 1, $1::float8)), 'its run died' from noted, at
where noted.root_thread is null
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), claimed_until = '-infinity' returning w.thread_id`;

/** A thread that kills its worker each time is tried once in so many seconds at least. */
const MOST_BACK_OFF_S = 60;

/** Makes threads due whose run died: its lease is over, or its process on this machine is gone. Answers how many. */
export async function wakeDeadRuns(database: Database): Promise<number> {
  const here = await database.query<{ holder: Holder; threads: string[]; epochs: string[] }>(
    "holders_here",
    HOLDERS_HERE,
    [hostname()],
  );
  for (const { threads, epochs } of here.filter(({ holder }) => isProvenDead(holder))) {
    await database.query("end_leases", END_LEASES, [threads, epochs]);
  }
  return (await database.query("wake_dead_runs", DEAD, [MOST_BACK_OFF_S])).length;
}

const SWEPT = `
insert into {schema}.sweeps as s (swept_at, swept_by) select {schema}.ledger_now(), $1
on conflict (only_row) do update set swept_at = excluded.swept_at, swept_by = excluded.swept_by`;

export async function noteSweep(database: Database, by: string): Promise<void> {
  await database.query("note_sweep", SWEPT, [by]);
}

const SINCE_SWEEP = `select (extract(epoch from {schema}.ledger_now() - swept_at) * 1000)::float8 as ms from {schema}.sweeps`;

/** How long ago anybody swept; undefined: never. */
export async function sinceSweepMs(database: Database): Promise<number | undefined> {
  const [row] = await database.query<{ ms: number }>("since_sweep", SINCE_SWEEP, []);
  return row?.ms;
}

const KEEP_GOING = `
insert into {schema}.wakes as w (thread_id, due_at, reason) select unnest($1::text[]), {schema}.ledger_now(), '${HANDED_OVER}'
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at)`;

/** Another worker should go on with these threads, as soon as their runs here have ended. */
export async function handOver(database: Database, threadIds: readonly string[]): Promise<void> {
  await database.query("hand_over", KEEP_GOING, [threadIds]);
}
