// What time does to requests for approval: warnings, the next person, the deadline; and the person who moves it.
import type { Approval } from "../core/approval.js";
import { plainText } from "../core/failure.js";
import { findApproval } from "./approvalRows.js";
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

// A deadline that has passed is all that is left to say; what came due while nobody swept happens now, once.
const SWEEP = `
with ${NOW},
due as materialized (
  select a.id, a.thread_id, coalesce(a.deadline_at <= at.now, false) as expires,
    coalesce(a.warn_at <= at.now and a.warned_at is null, false) as warns, coalesce(a.escalate_at <= at.now, false) as escalates
  from {schema}.approvals a, at where a.due_at <= at.now order by a.due_at limit $1::int for update of a skip locked
),
changed as (
  update {schema}.approvals a set
    status = case when due.expires then 'expired' else a.status end,
    decided_at = case when due.expires then at.now end,
    decided_by = case when due.expires then 'system:timeout' end,
    warned_at = case when due.warns then at.now else a.warned_at end,
    approvers = case when due.escalates and not due.expires and a.approvers is not null then a.approvers || a.escalate_to[a.escalated + 1] else a.approvers end,
    escalated = case when due.escalates and not due.expires then a.escalated + 1 else a.escalated end,
    escalate_at = case when not due.escalates then a.escalate_at
      when a.escalated + 1 < cardinality(a.escalate_to) then at.now + make_interval(secs => a.escalate_after_ms / 1000.0) end
  from due, at where a.id = due.id
  returning a.id, a.thread_id, due.expires, due.warns, due.escalates, a.escalate_to[a.escalated] as asked
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select c.id, 'expired', 'system:timeout', null, at.now from changed c, at where c.expires
  union all select c.id, 'warned', 'system', null, at.now from changed c, at where c.warns and not c.expires
  union all select c.id, 'escalated', 'system', c.asked, at.now from changed c, at where c.escalates and not c.expires
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason)
  -- In one order, so that sweepers do not wait for each other in a circle.
  select e.thread_id, at.now, 'an approval expired'
  from (select distinct thread_id from changed where expires order by thread_id) e, at order by e.thread_id
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
)
select count(*)::int as changed, count(*) filter (where expires)::int as expired, count(*) filter (where warns and not expires)::int as warned,
  count(*) filter (where escalates and not expires)::int as escalated from changed`;

export interface ApprovalSweep {
  readonly expired: number;
  readonly warned: number;
  readonly escalated: number;
}

/** So many rows a statement: short locks, and a worker that dies loses little. */
const BATCH = 200;

/** Does what is due about requests for approval. Safe with any number of sweepers at once. */
export async function sweepApprovals(database: Database): Promise<ApprovalSweep> {
  const total = { expired: 0, warned: 0, escalated: 0 };
  for (;;) {
    const [row] = await database.query<ApprovalSweep & { changed: number }>("approval_sweep", SWEEP, [BATCH]);
    total.expired += row?.expired ?? 0;
    total.warned += row?.warned ?? 0;
    total.escalated += row?.escalated ?? 0;
    if ((row?.changed ?? 0) < BATCH) return total;
  }
}

const EXTEND = `
with ${NOW},
moved as (
  update {schema}.approvals a set deadline_at = a.deadline_at + make_interval(secs => $2::float8 / 1000)
  from at where a.id = $1::text and a.status = 'pending' and a.deadline_at > at.now and (a.approvers is null or a.approvers && $4::text[])
  returning a.id
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select moved.id, 'extended', $3::text, $5::text, at.now from moved, at
)
select id from moved`;

/** Moves a deadline that is not over yet. @returns the request as it is now, and whether it was moved */
export async function extendDeadline(
  database: Database,
  id: string,
  request: { byMs: number; by: string; names: readonly string[]; reason?: string },
): Promise<{ extended: boolean; approval: Approval | undefined }> {
  const { byMs, by, names, reason } = request;
  const detail = plainText(`by ${byMs} ms${reason === undefined ? "" : `: ${reason}`}`, 500);
  const rows = await database.query("approval_extend", EXTEND, [id, byMs, plainText(by, 200), names, detail]);
  return { extended: rows.length > 0, approval: await findApproval(database, id) };
}
