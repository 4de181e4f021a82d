-- Budgets of parts of a thread, of time and of supersteps, and what is kept back for wrapping up.

-- A superstep is counted when its graph first starts it; a thread that starts it again after a crash has it counted already.
-- Active milliseconds are added while a run works. What is kept back is left for the wrap-up: from its start on, until a person
-- raises the budget, the reserve may be used.
alter table {schema}.budgets
  add column limit_iterations bigint check (limit_iterations >= 0),
  add column raised_iterations bigint not null default 0 check (raised_iterations >= 0),
  add column spent_iterations bigint not null default 0 check (spent_iterations >= 0),
  add column limit_active_ms bigint check (limit_active_ms >= 0),
  add column raised_active_ms bigint not null default 0 check (raised_active_ms >= 0),
  add column spent_active_ms bigint not null default 0 check (spent_active_ms >= 0),
  -- Time in which the machine or the process was stopped: no work, and counted against nothing.
  add column suspended_ms bigint not null default 0 check (suspended_ms >= 0),
  add column kept_nano_usd bigint not null default 0 check (kept_nano_usd >= 0),
  add column kept_tokens bigint not null default 0 check (kept_tokens >= 0),
  add column kept_model_calls bigint not null default 0 check (kept_model_calls >= 0),
  add column kept_tool_calls bigint not null default 0 check (kept_tool_calls >= 0),
  add column wrapping_up boolean not null default false,
  -- When a call in the scope was first refused, since its limits were last raised.
  add column exceeded_at timestamptz;

-- One row a graph on a thread, and a graph in it: its superstep that was counted last.
create table {schema}.budget_positions (
  thread_id text not null,
  checkpoint_ns text not null,
  superstep integer not null,
  primary key (thread_id, checkpoint_ns)
);

-- Append-only: what a budget did to its thread, beside what people did to it (budget_changes).
create table {schema}.budget_events (
  id bigint generated always as identity primary key,
  scope text not null,
  kind text not null check (kind in ('exceeded', 'degraded', 'restored', 'wrapping up', 'suspended', 'new run')),
  detail jsonb not null,
  at timestamptz not null
);
create index budget_events_by_scope on {schema}.budget_events (scope, id);

alter table {schema}.budget_changes
  add column iterations bigint not null default 0,
  add column active_ms bigint not null default 0;
