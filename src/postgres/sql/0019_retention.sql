-- Deleting threads for good, and keeping tables small.

alter table {schema}.threads
  -- Somebody wants the thread gone: no run takes it any more, and it goes once nothing of it is in doubt.
  add column delete_requested_at timestamptz,
  add column delete_requested_by text,
  -- The thread is gone. Of its row the generation and the epoch are left, so that an old run stays fenced and a new thread
  -- of that id has new keys; null again when one begins.
  add column deleted_at timestamptz,
  add column deleted_by text,
  add constraint deletion_names_its_author check ((delete_requested_at is null) = (delete_requested_by is null)),
  add constraint deletion_stops_the_thread check (delete_requested_at is null or cancel_requested_at is not null);
-- The sweep of deletions that had to wait: few rows at any time.
create index threads_to_delete on {schema}.threads (thread_id) where delete_requested_at is not null;

-- What is kept of a deleted thread's writes, for audit: that they were made, and what became of them. No input, no output, no
-- error, no reason, no name of a person. Written by the deletion; by a receipt that comes after it.
create table {schema}.deleted_effects (
  key bytea primary key,
  thread_id text not null,
  generation integer not null,
  name text not null,
  kind text not null,
  state text not null,
  attempt integer not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  deleted_at timestamptz not null,
  -- A success that an attempt reported when the thread was gone.
  late_success_at timestamptz
);
create index deleted_effects_by_thread on {schema}.deleted_effects (thread_id);

-- The event that ordered a thread stays known when the thread is deleted: delivered again it must start nothing. Of its row
-- the event, the graph and the id that the thread had are left.
alter table {schema}.starts
  drop constraint starts_pkey,
  alter column thread_id drop not null,
  add unique (thread_id),
  add column deleted_thread_id text;

-- Set by a prune that removed the checkpoint under the step, under which nobody can come back to it. `passed`: every checkpoint
-- that is left came after it, so the same write done again is a new one. `left`: it is on a branch that was left, and the same
-- write there is asked about as ever.
alter table {schema}.steps add column base_pruned text check (base_pruned in ('passed', 'left'));

-- One row a fork that was made by `fork`: where the branch begins, and what its runs do about what the other branch has done.
-- Written with the thread's lease held.
create table {schema}.forks (
  thread_id text not null,
  checkpoint_id text not null,
  from_checkpoint_id text not null,
  on_fork text check (on_fork in ('ask', 'run')),
  reuse_equal_input boolean not null,
  by_whom text not null,
  at timestamptz not null,
  primary key (thread_id, checkpoint_id)
);

alter table {schema}.thread_events drop constraint thread_events_kind_check,
  add constraint thread_events_kind_check
    check (kind in ('started', 'cancel requested', 'cancelled', 'cancel came too late', 'cancel lifted', 'forked'));

-- How long a thread is kept after its end, counted from its last activity; null: until somebody deletes it.
alter table {schema}.threads add column ttl_ms bigint check (ttl_ms > 0);
-- The sweep of threads whose time is over.
create index threads_by_ttl on {schema}.threads (updated_at) where ttl_ms is not null;
