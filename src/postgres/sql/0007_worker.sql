-- Due work: who has taken a wake in hand, which dead runs were found, and when somebody last looked.

-- A claim is a time, so that what a dead worker had claimed comes back by itself. The wake itself goes when a run STARTS.
alter table {schema}.wakes
  add column claimed_until timestamptz not null default '-infinity',
  add column claimed_by text,
  -- Claims since the wake was written: each lasts longer than the one before.
  add column tries integer not null default 0;

alter table {schema}.threads
  -- Whose code it is: the name that durableGraph was given, or the compiled graph's own.
  add column graph text,
  -- For a thread that ran inside another one: the outermost, which is run in its place.
  add column root_thread text,
  -- The dead run that a sweep has found already, and how many runs died in a row.
  add column swept_epoch bigint,
  add column deaths integer not null default 0;
-- The sweep of dead runs. Holds the threads that run now; a renewal changes no column of it.
create index threads_running on {schema}.threads (thread_id) where state = 'running';

-- One row: who swept last. `longhaul doctor` reads it.
create table {schema}.sweeps (
  only_row boolean primary key default true check (only_row),
  swept_at timestamptz not null,
  swept_by text not null
);

-- Rings for workers that listen. Carries the thread's id alone; a poll finds what no bell was heard of.
create function {schema}.ring_due() returns trigger language plpgsql as {quote}
begin
  if new.due_at <= {schema}.ledger_now() + interval '1 second' then
    perform pg_notify('longhaul_due', new.thread_id);
  end if;
  return null;
end
{quote};
create trigger wakes_ring after insert or update on {schema}.wakes
  for each row when (new.claimed_until = '-infinity') execute function {schema}.ring_due();
