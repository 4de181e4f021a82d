-- Deadlines that pass while nobody is at work.

alter table {schema}.budgets
  -- What a refused call does, for who finds the deadline over while the thread sleeps. Null: it pauses.
  add column on_exceeded text check (on_exceeded in ('pause', 'fail', 'finish')),
  -- A later deadline that a person gave. The code's own one, given anew at every run, does not take it away.
  add column raised_deadline timestamptz,
  -- The deadline that was acted on already.
  add column swept_deadline timestamptz;
-- The sweep of deadlines: threads' own ones that nobody has acted on. Few rows at any time.
create index budgets_by_deadline on {schema}.budgets (deadline)
  where deadline is not null and scope = thread_id and swept_deadline is distinct from deadline;

alter table {schema}.budget_changes add column deadline timestamptz;
