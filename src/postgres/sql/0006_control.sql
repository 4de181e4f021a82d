-- Stopping and starting: cancels, and runs that an event or a caller has ordered.

-- Set by whoever cancels the thread, taken away when a person lets it go on. While `state` is still 'running' the run is
-- being told; no step of it is claimed and no checkpoint of it is stored any more.
alter table {schema}.threads
  add column cancel_requested_at timestamptz,
  add column cancel_requested_by text,
  add column cancel_reason text,
  -- The thread in whose run this one was last run.
  add column parent_thread_id text,
  add constraint cancel_names_its_author check ((cancel_requested_at is null) = (cancel_requested_by is null));
-- A cancel reaches the threads that run inside: few rows.
create index threads_by_parent on {schema}.threads (parent_thread_id) where parent_thread_id is not null;

-- Append-only: what people did to a thread as a whole. Deleted with the thread.
create table {schema}.thread_events (
  id bigint generated always as identity primary key,
  thread_id text not null,
  kind text not null check (kind in ('started', 'cancel requested', 'cancelled', 'cancel came too late', 'cancel lifted')),
  by_whom text not null,
  reason text,
  at timestamptz not null
);
create index thread_events_by_thread on {schema}.thread_events (thread_id, id);

-- One row a thread that was ordered with its input, durable before the order is acknowledged. Outlives the thread's
-- checkpoints: an event that comes again is still the same one.
create table {schema}.starts (
  thread_id text primary key,
  -- Tells an order that is sent again after a lost answer from another one like it.
  order_id uuid not null,
  -- The event that ordered it: it is delivered more than once, and starts one thread.
  source text,
  event_id text,
  graph text not null,
  input_hash bytea not null,
  input bytea not null,
  tenant text,
  created_at timestamptz not null,
  -- Set when the thread's checkpoints are deleted: until then they tell whether a run has taken the input.
  taken_at timestamptz,
  unique (source, event_id),
  constraint event_has_a_source check ((source is null) = (event_id is null))
);

-- As before, and: a receipt that was on its way when its thread was cancelled says so.
create or replace view {schema}.step_events as
select key, (row_number() over (partition by key order by at, place))::int as n, attempt, from_state, to_state, actor, reason, at
from (
  select key, 1 as place, attempt, from_state, to_state, actor, reason, at from {schema}.step_changes
  union all
  select key, 0, 1, null, case when claim_id is null then 'SUCCEEDED' else 'RUNNING' end, 'run', null,
    case when claim_id is null then ended_at else started_at end
  from {schema}.steps where sibling_key is null and attempt > 0
  union all
  select s.key, 2, s.attempt, 'RUNNING', 'SUCCEEDED', 'run',
    (select 'committed late: ' || e.by_whom || ' had asked to cancel' from {schema}.thread_events e
     where e.thread_id = s.thread_id and e.kind = 'cancel requested' and e.at between s.claimed_at and s.ended_at order by e.id limit 1),
    s.ended_at
  from {schema}.steps s
  where s.claim_id is not null and s.state in ('SUCCEEDED', 'COMPENSATING', 'COMPENSATED')
    and not exists (select 1 from {schema}.step_changes c where c.key = s.key and c.to_state = 'SUCCEEDED' and c.from_state is distinct from 'SUCCEEDED')
) told;
