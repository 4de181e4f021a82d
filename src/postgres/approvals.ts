// Requests for approval: asking, deciding, using. Each is one statement; a decision, its event and the thread's wake are one
// transaction, so no crash loses any of them alone (G15).
import { randomUUID } from "node:crypto";
import type { Answer, Approval, ApprovalIntent, ApprovalLedger, DecideAnswer, Decider } from "../core/approval.js";
import { namesOf } from "../core/approval.js";
import { DecisionRefusedError, NotFoundError } from "../core/errors.js";
import { plainText } from "../core/failure.js";
import { canonicalJson } from "../core/key.js";
import type { Refused, RunTicket } from "../core/ledger.js";
import { findApproval, listApprovals, OPEN_OR_UNUSED } from "./approvalRows.js";
import { isHeld, whyRefused } from "./cancels.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";

const lease = (thread: string, epoch: string) => `lease as (
  select t.generation from {schema}.threads t, at
  where t.thread_id = ${thread}::text and ${isHeld(epoch, "at.now")} for share of t
)`;

// The same task, action and arguments are the same row, whatever order equal calls come in. A deadline that is over has decided,
// also where nobody swept. A tool call under another id takes over a request that no call has used, or asked for in this run.
const ASK = `
with ${NOW}, ${lease("$2", "$3")},
known as (
  update {schema}.approvals a set place = $4::text,
    status = case when a.status = 'pending' and a.deadline_at <= at.now then 'expired' else a.status end,
    decided_by = case when a.status = 'pending' and a.deadline_at <= at.now then 'system:timeout' else a.decided_by end,
    decided_at = case when a.status = 'pending' and a.deadline_at <= at.now then at.now else a.decided_at end
  from lease, at where a.thread_id = $2 and a.checkpoint_ns = $6::text and a.action = $8::text and a.args_hash = $11::bytea
    and a.nth = $20::int and a.tool_call_id is not distinct from $7::text and a.status not in ('superseded', 'cancelled')
  returning a.id, a.status = 'expired' and a.decided_at = at.now as expires
),
adopted as (
  update {schema}.approvals a set place = $4, tool_call_id = $7 from lease
  where $7 is not null and not exists (select 1 from known) and a.id = (
    select b.id from {schema}.approvals b
    where b.thread_id = $2 and b.checkpoint_ns = $6 and b.action = $8 and b.args_hash = $11 and b.tool_call_id is not null
      and b.used_at is null and b.status in ('pending', 'approved', 'edited', 'rejected') and b.id <> all($21::text[])
    order by b.seq limit 1)
  returning a.id
),
made as (
  insert into {schema}.approvals as a (id, thread_id, generation, place, node, checkpoint_ns, tool_call_id, action, description, args,
    args_hash, args_schema, may_edit, approvers, on_timeout, requested_at, deadline_at, warn_at, escalate_to, escalate_after_ms,
    escalate_at, nth)
  select $1, $2, lease.generation, $4, $5::text, $6, $7, $8, $9::text, $10::bytea, $11, $12::text, $13::boolean,
    $14::text[], $15::text, at.now, at.now + make_interval(secs => $16::float8 / 1000), at.now + make_interval(secs => $17::float8 / 1000),
    $18::text[], $19::bigint, at.now + make_interval(secs => $19 / 1000.0), $20
  from lease, at where not exists (select 1 from known) and not exists (select 1 from adopted)
  on conflict do nothing
  returning a.id
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, at)
  select made.id, 'requested', 'run', at.now from made, at
  union all select known.id, 'expired', 'system:timeout', at.now from known, at where known.expires
)
select (select count(*) from lease)::int as leased,
  coalesce((select id from known limit 1), (select id from adopted), (select id from made)) as id`;

async function ask(
  database: Database,
  ticket: RunTicket,
  intent: ApprovalIntent,
  asked: readonly string[],
): Promise<Approval | Refused> {
  const { policy } = intent;
  const finite = (ms: number | undefined) => (ms === undefined || !Number.isFinite(ms) ? null : Math.ceil(ms));
  const [row] = await database.query<{ leased: number; id: string | null }>("approval_ask", ASK, [
    intent.id,
    ticket.threadId,
    ticket.epoch,
    intent.place,
    intent.node,
    intent.checkpointNs,
    intent.toolCallId ?? null,
    intent.action,
    intent.description === undefined ? null : plainText(intent.description, 20_000),
    database.bodies.toStored(intent.args),
    hexToBytes(intent.argsHash),
    intent.argsSchema === undefined ? null : JSON.stringify(intent.argsSchema),
    policy.mayEdit ?? true,
    policy.approvers ?? null,
    policy.onTimeout ?? "reject",
    finite(policy.timeoutMs),
    finite(policy.warnAfterMs),
    policy.escalateTo ?? [],
    finite(policy.escalateAfterMs),
    intent.nth,
    asked,
  ]);
  // Our own statement, sent a second time, finds what the first has made.
  if (row?.leased !== 1) return whyRefused(database, ticket);
  const approval = await findApproval(database, row.id ?? intent.id);
  if (approval === undefined) throw new Error(`The request ${intent.id} was deleted while it was asked.`);
  return approval;
}

const DECIDE = `
with ${NOW},
decided as (
  update {schema}.approvals a set status = $2::text, decided_at = at.now, decided_by = $3::text, comment = $4::text,
    edited_args = $5::bytea, decision_id = $6::uuid
  from at where a.id = $1::text and a.status = 'pending' and (a.deadline_at is null or a.deadline_at > at.now)
    and (a.approvers is null or a.approvers && $7::text[]) and ($2 <> 'edited' or a.may_edit)
  returning a.id, a.thread_id, a.status, a.decided_by, a.comment
),
late as (
  -- The deadline decides, also where nobody has swept since.
  update {schema}.approvals a set status = 'expired', decided_at = at.now, decided_by = 'system:timeout'
  from at where a.id = $1 and a.status = 'pending' and a.deadline_at <= at.now
  returning a.id, a.thread_id, a.status, a.decided_by, a.comment
),
changed as (select * from decided union all select * from late),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select changed.id, changed.status, changed.decided_by, changed.comment, at.now from changed, at
)
insert into {schema}.wakes as w (thread_id, due_at, reason)
select changed.thread_id, at.now, 'an approval was decided' from changed, at
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason`;

async function decide(database: Database, id: string, decider: Decider, answer: Answer): Promise<DecideAnswer> {
  const decisionId = decider.decisionId ?? randomUUID();
  const args = answer.status === "edited" ? canonicalJson(answer.args, "the edited arguments") : undefined;
  await database.query("approval_decide", DECIDE, [
    id,
    answer.status,
    plainText(decider.by, 200),
    answer.comment === undefined ? null : plainText(answer.comment, 2000),
    args === undefined ? null : database.bodies.toStored(args),
    decisionId,
    namesOf(decider),
  ]);
  const approval = await findApproval(database, id);
  if (approval === undefined)
    throw new NotFoundError(`No request for approval has the id "${id}". List them: longhaul approvals list`);
  if (approval.decisionId === decisionId) return { result: "applied", approval };
  if (approval.status !== "pending") return { result: "already-decided", approval };
  const why =
    answer.status === "edited" && !approval.mayEdit
      ? "its arguments may not be changed: approve or reject it"
      : `"${decider.by}" is not among its approvers`;
  await refuse(database, id, decider.by, `${answer.status}: ${why}`);
  throw new DecisionRefusedError(`The request ${id} for "${approval.action}" was not decided: ${why}.`, {
    threadId: approval.threadId,
  });
}

/** Notes a decision that was not taken: who tried, and why not. */
async function refuse(database: Database, id: string, by: string, why: string): Promise<void> {
  await database.query(
    "approval_refuse",
    `insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
     select a.id, 'refused', $2::text, $3::text, {schema}.ledger_now() from {schema}.approvals a where a.id = $1::text`,
    [id, plainText(by, 200), plainText(why, 500)],
  );
}

const USE = `
with ${NOW}, ${lease("$2", "$3")},
used as (
  update {schema}.approvals a set used_at = at.now from lease, at
  where a.id = $1::text and a.used_at is null and a.status in ('approved', 'edited', 'rejected', 'expired') returning a.id
)
insert into {schema}.approval_events (approval_id, kind, by_whom, at) select used.id, 'used', 'run', at.now from used, at`;

const SUPERSEDE = `
with ${NOW}, ${lease("$2", "$3")},
gone as (
  update {schema}.approvals a set status = 'superseded' from lease where a.id = $1::text and a.status <> 'superseded' returning a.id
)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', $4::text, at.now from gone, at`;

const LEAVE = `
with ${NOW},
gone as (update {schema}.approvals a set status = 'superseded' where a.thread_id = $1::text and ${OPEN_OR_UNUSED} returning a.id)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', 'the thread went on elsewhere', at.now from gone, at`;

const CLOSE_UNASKED = `
with ${NOW}, ${lease("$1", "$2")},
gone as (
  update {schema}.approvals a set status = 'superseded' from lease
  where a.thread_id = $1 and a.status not in ('superseded', 'cancelled') and a.id <> all($3::text[]) and (($4::boolean and a.status = 'pending')
    or exists (select 1 from {schema}.approvals b where b.id = any($3) and (b.place = a.place
      -- The model made its call anew, with another id and other arguments: nobody is to answer the first one any more.
      or (a.status = 'pending' and b.checkpoint_ns = a.checkpoint_ns and b.action = a.action and a.tool_call_id <> b.tool_call_id))))
  returning a.id
)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', 'its place does not ask for it any more', at.now from gone, at`;

export function createApprovals(database: Database): ApprovalLedger {
  return {
    ask: (ticket, intent, asked) => ask(database, ticket, intent, asked),
    find: (id) => findApproval(database, id),
    pending: (threadId) => listApprovals(database, { status: "pending", threadId, limit: 1000 }),
    decide: (id, decider, answer) => decide(database, id, decider, answer),
    use: async ({ threadId, epoch }, id) => {
      await database.query("approval_use", USE, [id, threadId, epoch]);
    },
    supersede: async ({ threadId, epoch }, id, reason) => {
      await database.query("approval_supersede", SUPERSEDE, [id, threadId, epoch, plainText(reason, 500)]);
    },
    refuse: (id, by, why) => refuse(database, id, by, why),
    closeUnasked: async ({ threadId, epoch }, asked, isDone) => {
      await database.query("approval_close_unasked", CLOSE_UNASKED, [threadId, epoch, asked, isDone]);
    },
    leaveAll: async (threadId) => {
      await database.query("approval_leave", LEAVE, [threadId]);
    },
  };
}
