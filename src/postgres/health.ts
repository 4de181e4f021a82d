// What `longhaul doctor` asks: settings that the ledger's promises rest on, and threads that nobody has run.
import type { Database } from "./pool.js";

const SERVER = `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
  current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync,
  extract(epoch from clock_timestamp())::float8 * 1000 as now_ms, (select offset_ms from {schema}.clock)::float8 as offset_ms`;

export interface ServerRow {
  readonly version: string;
  /** 140000 is 14.0. */
  readonly number: number;
  readonly commit: string;
  readonly fsync: string;
  /** The server's own clock. */
  readonly now_ms: number;
  /** By how much the ledger's clock was moved; only tests do. */
  readonly offset_ms: number;
}

export async function readServer(database: Database): Promise<ServerRow | undefined> {
  const [row] = await database.query<ServerRow>("doctor_server", SERVER, []);
  return row;
}

const HALF_UNDONE = `select t.thread_id from {schema}.threads t where t.closed_at is not null and t.state <> 'running'
  and exists (select from {schema}.steps s where s.thread_id = t.thread_id and s.state = 'COMPENSATING') order by t.closed_at`;

/** Threads whose undoing has begun and is not complete, and that nobody is at. */
export async function halfUndoneThreads(database: Database): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("doctor_half_undone", HALF_UNDONE, []);
  return rows.map(({ thread_id }) => thread_id);
}

// The clock is read once: compared as a value, the indexes can be used. A run that died is due from the end of its lease on.
const OVERDUE = `
with at as materialized (select {schema}.ledger_now() - interval '1 minute' as late)
select thread_id, due_at from {schema}.wakes where due_at < (select late from at)
union
select thread_id, lease_until from {schema}.threads
where state = 'running' and lease_until < (select late from at) and swept_epoch is distinct from epoch and root_thread is null
order by due_at`;

/** Threads that have been due for over a minute, the longest first. */
export async function overdueThreads(database: Database): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>("doctor_due", OVERDUE, []);
  return [...new Set(rows.map(({ thread_id }) => thread_id))];
}

const ANY_DUE = `
with at as materialized (select {schema}.ledger_now() as now)
select exists (select from {schema}.wakes where due_at <= (select now from at)) or exists (
  select from {schema}.threads where state = 'running' and lease_until <= (select now from at) and swept_epoch is distinct from epoch
) as due, (select (extract(epoch from (select now from at) - swept_at) * 1000)::float8 from {schema}.sweeps) as swept_ms_ago,
  (select swept_by from {schema}.sweeps) as swept_by`;

export interface Sweeping {
  /** Something is due now. */
  readonly due: boolean;
  /** Null: nobody ever swept. */
  readonly swept_ms_ago: number | null;
  readonly swept_by: string | null;
}

export async function readSweeping(database: Database): Promise<Sweeping> {
  const [row] = await database.query<Sweeping>("doctor_sweeping", ANY_DUE, []);
  return row ?? { due: false, swept_ms_ago: null, swept_by: null };
}

const OVERDUE_COUNT = `
select count(*)::int as threads from {schema}.wakes, (select {schema}.ledger_now() as now) at
where due_at < at.now - interval '1 minute' and claimed_until <= at.now`;

/** How many threads have been due for over a minute, and are in no worker's hands. */
export async function countOverdue(database: Database): Promise<number> {
  const [row] = await database.query<{ threads: number }>("page_overdue", OVERDUE_COUNT, []);
  return row?.threads ?? 0;
}
