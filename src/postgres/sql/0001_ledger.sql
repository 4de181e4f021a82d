-- The ledger: threads and their leases, steps and their history, checkpoint heads, wakes.
-- {schema} is replaced by the quoted schema name; nothing here relies on search_path.

-- The one clock. Nothing else in this schema reads time. The offset is written by tests alone.
create table {schema}.clock (
  only_row boolean primary key default true check (only_row),
  offset_ms bigint not null default 0
);
insert into {schema}.clock default values;

create function {schema}.ledger_now() returns timestamptz language sql volatile
  return (select clock_timestamp() + make_interval(secs => offset_ms / 1000.0) from {schema}.clock);

-- One row a thread. Written by whoever starts, renews and ends a run; deleted never (a tombstone keeps its generation).
-- The lease: one run at a time. `epoch` rises with every run and fences the one before it.
create table {schema}.threads (
  thread_id text primary key,
  generation integer not null default 0,
  epoch bigint not null default 0,
  lease_until timestamptz not null default '-infinity',
  -- Who holds the lease: {"runId", "host", "bootId", "pidNamespace", "pid", "startedAt"}.
  holder jsonb,
  state text not null default 'running'
    check (state in ('running', 'waiting', 'due', 'done', 'failed', 'cancelled')),
  error jsonb,
  -- Set when the thread's effects are being undone: no new write is claimed after that.
  closed_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 70);
-- `longhaul runs`: the newest first.
create index threads_by_update on {schema}.threads (updated_at desc);

-- One row a step. Written by the run that claims it, by lookups and by people; deleted only with its thread.
create table {schema}.steps (
  key bytea primary key,
  thread_id text not null,
  generation integer not null,
  seq bigint generated always as identity,
  kind text not null check (kind in ('node', 'tool', 'llm')),
  effect text not null check (effect in ('read', 'write')),
  name text not null,
  version text,
  call_site text not null,
  node text not null,
  superstep integer not null,
  -- The task's namespace, which ends in LangGraph's task id, and the checkpoint that the task was made from.
  checkpoint_ns text not null,
  checkpoint_id text not null,
  input_hash bytea not null,
  -- Bodies are bytes: text columns refuse NUL, and nothing here searches in them.
  input bytea,
  settle_ms bigint not null,
  -- Equal for writes of one thread that would do the same at the same place of the graph; null for what is no such write.
  likeness bigint,
  -- The write on another branch that did this before; a person says whether its result is reused.
  sibling_key bytea,
  drift_hash bytea,
  drift_decision text check (drift_decision in ('keep', 'fail')),
  attempt integer not null check (attempt >= 0),
  claim_id uuid,
  epoch bigint not null,
  started_at timestamptz not null,
  -- When the current attempt was claimed: no send of it was earlier.
  claimed_at timestamptz not null,
  failures integer not null default 0,
  lookups integer not null default 0,
  effect_known boolean not null default false,
  due_at timestamptz,
  -- How many rows step_changes has.
  changes integer not null default 0,
  -- What a receipt changes stands last and together: the server then logs this part of the row alone.
  error jsonb,
  -- Doubt: an attempt may have had an effect that nobody knows of.
  doubt_since timestamptz,
  first_unresolved_send_at timestamptz,
  could_send_until timestamptz,
  lease_until timestamptz,
  state text not null check (state in ('READY', 'RUNNING', 'SUCCEEDED', 'RETRY_SCHEDULED', 'WAITING_HUMAN',
    'NEEDS_RECONCILIATION', 'FAILED_PERMANENT', 'COMPENSATING', 'COMPENSATED', 'CANCELLED')),
  ended_at timestamptz,
  output bytea,
  model text,
  input_tokens bigint,
  output_tokens bigint,
  cached_input_tokens bigint,
  reasoning_tokens bigint,
  -- Undefined price is null, never 0.
  cost_nano_usd bigint,
  -- No error and no cancel is a "no" while the effect may have happened (G9).
  constraint doubt_is_sticky check (doubt_since is null or state in ('RUNNING', 'NEEDS_RECONCILIATION', 'WAITING_HUMAN')),
  constraint success_has_output check (state <> 'SUCCEEDED' or output is not null)
) with (fillfactor = 80);
-- No index here names a column that an ordinary step changes: its receipt is then a heap-only update, which touches no
-- index at all.
-- The trace of one thread, in order; the steps that a new run, or a moved head, has to look at.
create index steps_by_thread on {schema}.steps (thread_id, seq);
-- Before a write's intent: has another branch of the thread done this before (G6)?
create index steps_by_likeness on {schema}.steps (likeness) where likeness is not null;
-- `longhaul reconcile list`: what a lookup or a person must settle. Few rows at any time.
create index steps_in_doubt on {schema}.steps (doubt_since) where doubt_since is not null;
create index steps_with_sibling on {schema}.steps (sibling_key) where sibling_key is not null;
create index steps_with_drift on {schema}.steps (drift_hash) where drift_hash is not null;

-- Append-only: one row for every change of a step that its own row does not tell: by whom, and why. Written in the
-- transaction of the change. Read the view step_events.
create table {schema}.step_changes (
  key bytea not null,
  n integer not null,
  attempt integer not null,
  from_state text,
  to_state text not null,
  actor text not null,
  reason text,
  at timestamptz not null,
  primary key (key, n)
);

-- Everything that ever happened to a step. The two changes that nearly every step has, and has alone, are told by its row:
-- the first claim (or the read with its result) at started_at, and the run's own receipt at ended_at.
create view {schema}.step_events as
select key, (row_number() over (partition by key order by at, place))::int as n, attempt, from_state, to_state, actor, reason, at
from (
  select key, 1 as place, attempt, from_state, to_state, actor, reason, at from {schema}.step_changes
  union all
  select key, 0, 1, null, case when claim_id is null then 'SUCCEEDED' else 'RUNNING' end, 'run', null,
    case when claim_id is null then ended_at else started_at end
  from {schema}.steps where sibling_key is null and attempt > 0
  union all
  select s.key, 2, s.attempt, 'RUNNING', 'SUCCEEDED', 'run', null, s.ended_at
  from {schema}.steps s
  where s.claim_id is not null and s.state in ('SUCCEEDED', 'COMPENSATING', 'COMPENSATED')
    and not exists (select 1 from {schema}.step_changes c where c.key = s.key and c.to_state = 'SUCCEEDED' and c.from_state is distinct from 'SUCCEEDED')
) told;

-- Receipts that came after their step had been settled: evidence, never overwritten. Deleted with the thread.
create table {schema}.late_receipts (
  key bytea not null,
  attempt integer not null,
  output bytea not null,
  differs boolean not null,
  at timestamptz not null,
  -- Two different receipts are two effects: a person says that it is known.
  acknowledged_by text,
  acknowledged_at timestamptz,
  reason text,
  primary key (key, attempt)
);
-- `longhaul reconcile list`: hardly ever a row.
create index late_receipts_open on {schema}.late_receipts (key) where differs and acknowledged_by is null;

-- The head of each checkpoint namespace: the compare-and-set that keeps a second writer out. Written by LedgerSaver.
create table {schema}.heads (
  thread_id text not null,
  checkpoint_ns text not null,
  checkpoint_id text not null,
  primary key (thread_id, checkpoint_ns)
) with (fillfactor = 70);

-- Threads that should run again, and from when on. Written with the change that needs it; deleted when a run STARTS.
create table {schema}.wakes (
  thread_id text primary key,
  due_at timestamptz not null,
  reason text not null
);
-- The sweeper: what is due, oldest first.
create index wakes_due on {schema}.wakes (due_at);

-- Circuit breakers, one for each effect that declares one. Written by the workers whose calls fail; a row is deleted when
-- the other side is well again.
create table {schema}.breakers (
  name text primary key,
  failures integer not null,
  opened_at timestamptz,
  -- One worker is trying, until then at the latest.
  probe_until timestamptz
);
