-- Budgets: what a scope may spend, has spent, and has reserved for calls that are under way.

-- One row a scope; a thread's own scope has the thread's name. Written by runs that open it, by every call that is paid,
-- and by people who raise it; deleted with the thread. Sums are kept, not computed: a call must not read all calls before it.
create table {schema}.budgets (
  scope text primary key,
  thread_id text not null,
  -- The scope that pays as well. Rows are locked from the outermost inwards.
  parent text,
  depth integer not null,
  -- What the code allows; null is no limit.
  limit_nano_usd bigint check (limit_nano_usd >= 0),
  limit_tokens bigint check (limit_tokens >= 0),
  limit_model_calls bigint check (limit_model_calls >= 0),
  limit_tool_calls bigint check (limit_tool_calls >= 0),
  deadline timestamptz,
  -- What people added to it.
  raised_nano_usd bigint not null default 0 check (raised_nano_usd >= 0),
  raised_tokens bigint not null default 0 check (raised_tokens >= 0),
  raised_model_calls bigint not null default 0 check (raised_model_calls >= 0),
  raised_tool_calls bigint not null default 0 check (raised_tool_calls >= 0),
  spent_nano_usd bigint not null default 0 check (spent_nano_usd >= 0),
  spent_tokens bigint not null default 0 check (spent_tokens >= 0),
  spent_model_calls bigint not null default 0 check (spent_model_calls >= 0),
  spent_tool_calls bigint not null default 0 check (spent_tool_calls >= 0),
  reserved_nano_usd bigint not null default 0 check (reserved_nano_usd >= 0),
  reserved_tokens bigint not null default 0 check (reserved_tokens >= 0),
  reserved_model_calls bigint not null default 0 check (reserved_model_calls >= 0),
  reserved_tool_calls bigint not null default 0 check (reserved_tool_calls >= 0)
) with (fillfactor = 50);
-- `longhaul budget show`.
create index budgets_by_thread on {schema}.budgets (thread_id);

-- One row a call that is under way: what is held back for it. Deleted when the call is settled; one of a run that is gone is
-- settled at its estimate and stays, so that an answer which comes late can still replace the estimate, once.
create table {schema}.reservations (
  id text primary key,
  thread_id text not null,
  epoch bigint not null,
  step_key bytea,
  attempt integer not null,
  scopes text[] not null,
  nano_usd bigint not null,
  tokens bigint not null,
  model_calls integer not null,
  tool_calls integer not null,
  settled_at timestamptz
);
-- The sweep of what dead runs had reserved.
create index reservations_open on {schema}.reservations (thread_id) where settled_at is null;

-- Append-only: who raised what, and why.
create table {schema}.budget_changes (
  id bigint generated always as identity primary key,
  scope text not null,
  by_whom text not null,
  reason text,
  nano_usd bigint not null,
  tokens bigint not null,
  model_calls bigint not null,
  tool_calls bigint not null,
  at timestamptz not null
);
