-- Approvals: what a person is asked before something happens, and what they said.

-- One row a request. Written by the run that asks, by whoever decides, and by the sweeper at its times; deleted only with its
-- thread. Asking again for the same action at the same place is the same row.
create table {schema}.approvals (
  -- 32 hexadecimal digits: LangGraph's form of an interrupt's id, which is this one.
  id text primary key,
  seq bigint generated always as identity,
  thread_id text not null,
  generation integer not null,
  -- The call site that asks: another request there takes the place of this one once a run has ended with it.
  place text not null,
  -- The ordinal among equal requests of one task.
  nth integer not null,
  node text not null,
  checkpoint_ns text not null,
  tool_call_id text,
  action text not null,
  description text,
  args bytea not null,
  args_hash bytea not null,
  -- JSON Schema of the arguments: edits are checked by it. Null: edits are not allowed, or anything is.
  args_schema text,
  may_edit boolean not null,
  -- Who may decide: names, and roles as `role:NAME`; null for every user who is known.
  approvers text[],
  on_timeout text not null check (on_timeout in ('reject', 'approve')),
  status text not null default 'pending'
    check (status in ('pending', 'approved', 'rejected', 'edited', 'expired', 'superseded', 'cancelled')),
  requested_at timestamptz not null,
  deadline_at timestamptz,
  warn_at timestamptz,
  warned_at timestamptz,
  -- Who is asked too, one after the other, every so many milliseconds.
  escalate_to text[] not null default '{}',
  escalate_after_ms bigint,
  escalated integer not null default 0,
  escalate_at timestamptz,
  decided_at timestamptz,
  decided_by text,
  comment text,
  -- Of the call that decided: a statement that is sent twice finds its own decision.
  decision_id uuid,
  edited_args bytea,
  -- The place took the decision and went on with it.
  used_at timestamptz,
  -- The next moment at which something is to be done about it by time alone.
  due_at timestamptz generated always as (
    case when status = 'pending' then least(case when warned_at is null then warn_at end, escalate_at, deadline_at) end) stored,
  constraint decided_by_someone check (status not in ('approved', 'rejected', 'edited', 'expired') or decided_by is not null),
  constraint edit_has_args check (status <> 'edited' or edited_args is not null)
) with (fillfactor = 80);
-- One request for one action: the task, the arguments, and the tool call or the ordinal among equal ones.
create unique index approvals_standing on {schema}.approvals (thread_id, checkpoint_ns, action, args_hash, nth, (coalesce(tool_call_id, '')))
  where status not in ('superseded', 'cancelled');
-- The approvals of a thread, in order; those that a moved head leaves behind.
create index approvals_by_thread on {schema}.approvals (thread_id, seq);
-- The inbox: what waits, the oldest first.
create index approvals_pending on {schema}.approvals (seq) where status = 'pending';
-- The inbox's past, the newest first.
create index approvals_by_seq on {schema}.approvals (seq);
-- The sweeper: whose time has come.
create index approvals_due on {schema}.approvals (due_at) where due_at is not null;

-- Append-only: everything that happened to a request, refusals included. Written in the transaction of the change.
create table {schema}.approval_events (
  id bigint generated always as identity primary key,
  approval_id text not null,
  kind text not null check (kind in ('requested', 'warned', 'escalated', 'approved', 'rejected', 'edited', 'expired',
    'superseded', 'cancelled', 'extended', 'refused', 'used')),
  by_whom text not null,
  detail text,
  at timestamptz not null
);
create index approval_events_by_approval on {schema}.approval_events (approval_id, id);
