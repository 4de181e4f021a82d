// What threads are held to, and changing it from outside a run: what `longhaul tools`, `drift` and `migrate-thread` do.
import { plainText } from "../core/failure.js";
import type { Pinned, PinUse, ToolShape } from "../core/version.js";
import type { Database } from "./pool.js";
import { SHOWN_STATE } from "./runs.js";

/** A thread that will run again. */
const OPEN = "in ('running', 'cancel requested', 'waiting', 'due')";

// A version is listed as long as it is registered, whether a thread is held to it or not. Two apps on one schema may have
// registered the same version of a name: the newest registration is shown.
const IN_USE = `
with at as materialized (select {schema}.ledger_now() as now),
held as (
  select p.kind, p.name, p.version, count(*)::int as threads, (count(*) filter (where s.state ${OPEN}))::int as open,
    (array_agg(p.thread_id order by s.updated_at desc, p.thread_id) filter (where s.state ${OPEN}))[1:$2::int] as open_ids
  from {schema}.pins p
  join (select t.thread_id, t.graph, t.updated_at, ${SHOWN_STATE} as state from {schema}.threads t, at where t.deleted_at is null) s
    using (thread_id)
  where $1::text is null or s.graph is null or s.graph = $1
  group by 1, 2, 3
),
known as (
  select distinct on (name, version) 'tool' as kind, name, version, shape, encode(fingerprint, 'hex') as fingerprint, registered_at
  from {schema}.tool_versions order by name, version, registered_at desc
)
select kind, name, version, known.shape, known.fingerprint, known.registered_at, coalesce(held.threads, 0) as threads,
  coalesce(held.open, 0) as open, coalesce(held.open_ids, '{}') as open_ids
from held full join known using (kind, name, version)
order by kind, name, registered_at nulls first, version`;

interface UseRow {
  readonly kind: Pinned["kind"];
  readonly name: string;
  readonly version: string;
  readonly shape: string | null;
  readonly fingerprint: string | null;
  readonly registered_at: Date | null;
  readonly threads: number;
  readonly open: number;
  readonly open_ids: string[];
}

/** So many threads are named of each version. */
const NAMED = 5;

/** Every version that is registered, or that a thread is held to. @param graph only threads that may be of this graph */
export async function pinsInUse(database: Database, graph?: string): Promise<PinUse[]> {
  const rows = await database.query<UseRow>("pins_in_use", IN_USE, [graph ?? null, NAMED]);
  return rows.map((row) => ({
    kind: row.kind,
    name: row.name,
    version: row.version,
    shape: row.shape === null ? undefined : (JSON.parse(row.shape) as ToolShape),
    fingerprint: row.fingerprint ?? undefined,
    registeredAt: row.registered_at ?? undefined,
    threads: row.threads,
    open: row.open,
    openThreads: row.open_ids,
  }));
}

/** What one thread is held to. */
export async function pinsOfThread(
  database: Database,
  threadId: string,
): Promise<{ kind: Pinned["kind"]; name: string; version: string }[]> {
  return database.query(
    "pins_of_thread",
    "select kind, name, version from {schema}.pins where thread_id = $1 order by kind, name",
    [threadId],
  );
}

/** A pin that a person moves. */
export interface MovedPin {
  readonly kind: Pinned["kind"];
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly detail: string;
}

// All or nothing, and only while no run has the thread. What was asked about the version before is asked anew, and the
// question whether to move is answered by the move.
const MOVE = `
with at as materialized (select {schema}.ledger_now() as now),
free as materialized (
  select t.thread_id from {schema}.threads t, at where t.thread_id = $1::text and t.lease_until <= at.now and t.deleted_at is null for update of t
),
wanted as materialized (
  select * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) w (kind, name, from_version, to_version, detail)
),
here as materialized (
  select p.kind, p.name from {schema}.pins p join free using (thread_id) join wanted w on w.kind = p.kind and w.name = p.name
    and w.from_version = p.version for update of p
),
all_here as (select 1 where (select count(*) from here) = (select count(*) from wanted)),
moved as (
  update {schema}.pins p set version = w.to_version, kept_against = null, moved_from = w.from_version, pinned_at = at.now, pinned_by = $7::text
  from wanted w, at, all_here where p.thread_id = $1 and p.kind = w.kind and p.name = w.name
  returning p.name
),
stale as (
  update {schema}.approvals a set status = 'superseded' from moved
  where a.thread_id = $1 and a.action in (moved.name, 'use another version of ' || moved.name) and a.used_at is null
    and a.status in ('pending', 'approved', 'edited')
  returning a.id
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select stale.id, 'superseded', $7, 'the thread was moved to another version', at.now from stale, at
),
woken as (
  insert into {schema}.wakes (thread_id, due_at, reason) select distinct $1, at.now, 'moved to another version' from stale, at
  on conflict (thread_id) do update set due_at = least({schema}.wakes.due_at, excluded.due_at)
),
noted as (
  insert into {schema}.pin_events (thread_id, kind, name, from_version, to_version, verdict, detail, by_whom, at)
  select $1, w.kind, w.name, w.from_version, w.to_version, 'migrated', w.detail, $7, at.now from wanted w, at, all_here
)
select (select count(*) from free)::int as free, (select count(*) from all_here)::int as moved, (select count(*) from stale)::int as stale`;

/** Moves a thread's pins, all or none. */
export async function movePins(
  database: Database,
  threadId: string,
  pins: readonly MovedPin[],
  by: string,
): Promise<{ readonly busy: boolean; readonly moved: boolean; readonly askedAnew: number }> {
  const column = (read: (pin: MovedPin) => string) => pins.map(read);
  const [row] = await database.query<{ free: number; moved: number; stale: number }>("pins_move", MOVE, [
    threadId,
    column(({ kind }) => kind),
    column(({ name }) => name),
    column(({ from }) => from),
    column(({ to }) => to),
    column(({ detail }) => plainText(detail, 2000)),
    plainText(by, 200),
  ]);
  return { busy: row?.free !== 1, moved: row?.moved === 1, askedAnew: row?.stale ?? 0 };
}

export interface PinEvent {
  readonly kind: Pinned["kind"];
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly verdict: string;
  readonly detail: string;
  readonly by: string;
  readonly at: Date;
}

/** How what a thread is held to has changed, the oldest first. */
export async function pinEvents(database: Database, threadId: string): Promise<PinEvent[]> {
  return database.query(
    "pin_events",
    `select kind, name, from_version as "from", to_version as "to", verdict, detail, by_whom as "by", at
     from {schema}.pin_events where thread_id = $1 order by id`,
    [threadId],
  );
}
