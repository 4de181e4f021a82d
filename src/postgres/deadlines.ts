// Deadlines of threads that pass while nobody runs them. A run that is at work sees its own by its lease's renewal; what
// sleeps, or waits for a person, is found here and gets what its budget says: a pause, a failure, or a run that wraps up.
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

// Each deadline is acted on once; a later one that a person gives is another. What runs inside another thread is woken with
// that one, whose code meets the limit. A pause leaves open what is asked: its answers count once the deadline is moved.
const SWEEP = `
with ${NOW},
over as materialized (
  select b.scope, b.deadline, t.root_thread is not null as inside, t.state in ('waiting', 'due') and not b.wrapping_up as acts,
    case when t.root_thread is not null and coalesce(b.on_exceeded, 'pause') = 'fail' then 'finish' else coalesce(b.on_exceeded, 'pause') end as what,
    'The deadline of the budget "' || b.scope || '" is over since ' || to_char(b.deadline at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || '.' as message
  from {schema}.budgets b join {schema}.threads t on t.thread_id = b.scope, at
  where b.deadline <= at.now and b.scope = b.thread_id and b.swept_deadline is distinct from b.deadline and t.state <> 'running'
  order by b.deadline, b.scope limit $1::int for update of t, b skip locked
),
noted as (
  update {schema}.budgets b set swept_deadline = b.deadline,
    exceeded_at = case when over.acts then coalesce(b.exceeded_at, at.now) else b.exceeded_at end
  from over, at where b.scope = over.scope
),
told as (
  insert into {schema}.budget_events (scope, kind, detail, at)
  select over.scope, 'exceeded', jsonb_build_object('scope', over.scope, 'limit', 'deadline'), at.now from over, at where over.acts
),
stopped as (
  update {schema}.threads t set updated_at = at.now, state = case when over.what = 'fail' then 'failed' else 'waiting' end,
    error = jsonb_build_object('name', 'BudgetExceededError', 'code', 'BUDGET_EXCEEDED', 'message', over.message)
  from over, at where t.thread_id = over.scope and over.acts and over.what <> 'finish' and not over.inside
  returning t.thread_id, over.what
),
unasked as (
  update {schema}.approvals a set status = 'cancelled' from stopped
  where a.thread_id = stopped.thread_id and stopped.what = 'fail' and a.status = 'pending' returning a.id
),
told_approvals as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select unasked.id, 'cancelled', 'system', 'its thread''s deadline is over', at.now from unasked, at
),
asleep as (delete from {schema}.wakes w using stopped where w.thread_id = stopped.thread_id and stopped.what = 'fail'),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason)
  select over.scope, at.now, 'its deadline is over' from over, at where over.acts and over.what = 'finish' order by over.scope
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason,
    claimed_until = '-infinity', tries = 0
)
select count(*)::int as found, count(*) filter (where acts)::int as acted from over`;

const BATCH = 200;

/** Acts on the deadlines of threads that nobody runs. Answers how many. Safe with any number of sweepers at once. */
export async function sweepDeadlines(database: Database): Promise<number> {
  for (let acted = 0; ; ) {
    const [row] = await database.query<{ found: number; acted: number }>("deadline_sweep", SWEEP, [BATCH]);
    acted += row?.acted ?? 0;
    if ((row?.found ?? 0) < BATCH) return acted;
  }
}
