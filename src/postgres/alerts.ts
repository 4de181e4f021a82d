// What is wrong now and has not been told yet. A row is the right to tell: of several processes that look at once, one gets it.
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

// Only threads that are at work can come near a limit; those that stand at one say so by themselves.
const NEAR = `
select b.scope, b.thread_id, (1 - greatest(
    (b.spent_nano_usd + b.reserved_nano_usd)::float8 / nullif(b.limit_nano_usd + b.raised_nano_usd, 0),
    (b.spent_tokens + b.reserved_tokens)::float8 / nullif(b.limit_tokens + b.raised_tokens, 0),
    (b.spent_model_calls + b.reserved_model_calls)::float8 / nullif(b.limit_model_calls + b.raised_model_calls, 0),
    (b.spent_tool_calls + b.reserved_tool_calls)::float8 / nullif(b.limit_tool_calls + b.raised_tool_calls, 0),
    b.spent_iterations::float8 / nullif(b.limit_iterations + b.raised_iterations, 0),
    b.spent_active_ms::float8 / nullif(b.limit_active_ms + b.raised_active_ms, 0)))::float8 as remaining
from {schema}.threads t join {schema}.budgets b using (thread_id) where t.state = 'running'`;

export interface NearBudget {
  readonly scope: string;
  readonly threadId: string;
  /** What is left of the limit that is nearest: 0.2 is a fifth. */
  readonly remainingRatio: number;
}

/** Budgets of threads that run now, of which less than a share is left. */
export async function budgetsNear(database: Database, below: number): Promise<NearBudget[]> {
  const rows = await database.query<{ scope: string; thread_id: string; remaining: number }>(
    "alerts_budgets",
    `select * from (${NEAR}) near where remaining < $1::float8 order by remaining limit 1000`,
    [below],
  );
  return rows.map(({ scope, thread_id, remaining }) => ({
    scope,
    threadId: thread_id,
    remainingRatio: Math.max(0, remaining),
  }));
}

/** Threads that have failed within the last hour. */
export async function failedLately(database: Database): Promise<string[]> {
  const rows = await database.query<{ thread_id: string }>(
    "alerts_failed",
    `with ${NOW} select t.thread_id from {schema}.threads t, at
     where t.updated_at > at.now - interval '1 hour' and t.state = 'failed' order by t.updated_at limit 1000`,
    [],
  );
  return rows.map(({ thread_id }) => thread_id);
}

/** What an alert is about; the same while it lasts. */
export interface AlertKey {
  readonly kind: string;
  readonly subject: string;
}

const CLAIM = `
with ${NOW},
found as (select * from unnest($1::text[], $2::text[]) as f (kind, subject)),
well as (
  -- Another process may have looked a moment later, and found what had not happened yet when this one looked.
  delete from {schema}.alerts a using at where a.told_at < at.now - interval '5 seconds'
    and not exists (select from found f where f.kind = a.kind and f.subject = a.subject)
)
insert into {schema}.alerts as a (kind, subject, raised_at, told_at)
select f.kind, f.subject, at.now, at.now from found f, at
on conflict (kind, subject) do update set told_at = excluded.told_at
  where a.told_at < excluded.told_at - make_interval(secs => $3::float8 / 1000)
returning a.kind, a.subject, a.raised_at`;

/** Of all that is wrong now, what is for the caller to tell: what is new, and what was told last `repeatMs` ago. */
export async function claimAlerts(
  database: Database,
  found: readonly AlertKey[],
  repeatMs: number,
): Promise<(AlertKey & { readonly since: Date })[]> {
  const rows = await database.query<AlertKey & { raised_at: Date }>("alerts_claim", CLAIM, [
    found.map(({ kind }) => kind),
    found.map(({ subject }) => subject),
    repeatMs,
  ]);
  return rows.map(({ kind, subject, raised_at }) => ({ kind, subject, since: raised_at }));
}
