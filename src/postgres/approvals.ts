// Requests for approval: asking, deciding, using. Each is one statement; a decision, its event and the thread's wake are one
// transaction, so no crash loses any of them alone (G15).
import { randomUUID } from "node:crypto";
import type { Answer, Approval, ApprovalIntent, ApprovalLedger, DecideAnswer, Decider } from "../core/approval.js";
import { namesOf } from "../core/approval.js";
import { DecisionRefusedError, NotFoundError } from "../core/errors.js";
import { plainText } from "../core/failure.js";
import { canonicalJson } from "../core/key.js";
import { findApproval, listApprovals } from "./approvalRows.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";

/** What may no longer be used: open requests, and decisions that nobody has gone on with (G16). */
export const OPEN_OR_UNUSED =
  "(a.status = 'pending' or (a.status in ('approved', 'edited', 'expired') and a.used_at is null))";

// The same place and arguments are the same row. One that was superseded, because the place asked something else meanwhile, is
// asked anew.
const ASK = `
with ${NOW},
lease as (
  select t.generation from {schema}.threads t, at
  where t.thread_id = $2::text and t.epoch = $3::bigint and t.lease_until > at.now for share of t
),
others as (
  update {schema}.approvals a set status = 'superseded' from lease
  where a.thread_id = $2 and a.place = $4::text and a.id <> $1::text and ${OPEN_OR_UNUSED} returning a.id
),
made as (
  insert into {schema}.approvals as a (id, thread_id, generation, place, node, checkpoint_ns, tool_call_id, action, description, args,
    args_hash, args_schema, may_edit, approvers, on_timeout, requested_at, deadline_at, warn_at, escalate_to, escalate_after_ms, escalate_at)
  select $1, $2, lease.generation, $4, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bytea, $11::bytea, $12::jsonb, $13::boolean,
    $14::text[], $15::text, at.now, at.now + make_interval(secs => $16::float8 / 1000), at.now + make_interval(secs => $17::float8 / 1000),
    $18::text[], $19::bigint, at.now + make_interval(secs => $19::bigint / 1000.0) from lease, at
  on conflict (id) do update set status = 'pending', requested_at = excluded.requested_at, deadline_at = excluded.deadline_at,
    warn_at = excluded.warn_at, warned_at = null, approvers = excluded.approvers, escalated = 0, escalate_at = excluded.escalate_at,
    decided_at = null, decided_by = null, decision_id = null, comment = null, edited_args = null, used_at = null
  where a.status = 'superseded'
  returning a.id
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select made.id, 'requested', 'run', null, at.now from made, at
  union all select others.id, 'superseded', 'run', 'its place asks for something else: ' || $1, at.now from others, at
)
select (select count(*) from lease)::int as leased`;

async function ask(
  database: Database,
  ticket: { threadId: string; epoch: bigint },
  intent: ApprovalIntent,
): Promise<Approval | undefined> {
  const { policy } = intent;
  const finite = (ms: number | undefined) => (ms === undefined || !Number.isFinite(ms) ? null : Math.ceil(ms));
  const [row] = await database.query<{ leased: number }>("approval_ask", ASK, [
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
  ]);
  return row?.leased === 1 ? findApproval(database, intent.id) : undefined;
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
with ${NOW},
used as (
  update {schema}.approvals a set used_at = at.now from at
  where a.id = $1::text and a.used_at is null and a.status in ('approved', 'edited', 'rejected', 'expired') returning a.id
)
insert into {schema}.approval_events (approval_id, kind, by_whom, at) select used.id, 'used', 'run', at.now from used, at`;

const SUPERSEDE = `
with ${NOW},
gone as (update {schema}.approvals a set status = 'superseded' where a.id = $1::text and ${OPEN_OR_UNUSED} returning a.id)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', $2::text, at.now from gone, at`;

const LEAVE = `
with ${NOW},
gone as (update {schema}.approvals a set status = 'superseded' where a.thread_id = $1::text and ${OPEN_OR_UNUSED} returning a.id)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', 'the thread went on elsewhere', at.now from gone, at`;

// A task that asks again asks for everything that it still wants: what it asked before under the same action is left behind.
const CLOSE_UNASKED = `
with ${NOW},
gone as (
  update {schema}.approvals a set status = 'superseded'
  where a.thread_id = $1::text and a.status = 'pending' and a.id <> all($2::text[]) and ($3::boolean or exists (
    select 1 from {schema}.approvals b where b.id = any($2) and b.checkpoint_ns = a.checkpoint_ns and b.action = a.action))
  returning a.id
)
insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
select gone.id, 'superseded', 'run', 'its place does not ask for it any more', at.now from gone, at`;

export function createApprovals(database: Database): ApprovalLedger {
  return {
    ask: (ticket, intent) => ask(database, ticket, intent),
    find: (id) => findApproval(database, id),
    pending: (threadId) => listApprovals(database, { status: "pending", threadId, limit: 1000 }),
    decide: (id, decider, answer) => decide(database, id, decider, answer),
    use: async (id) => {
      await database.query("approval_use", USE, [id]);
    },
    supersede: async (id, reason) => {
      await database.query("approval_supersede", SUPERSEDE, [id, plainText(reason, 500)]);
    },
    refuse: (id, by, why) => refuse(database, id, by, why),
    closeUnasked: async (threadId, asked, isDone) => {
      await database.query("approval_close_unasked", CLOSE_UNASKED, [threadId, asked, isDone]);
    },
    leaveAll: async (threadId) => {
      await database.query("approval_leave", LEAVE, [threadId]);
    },
  };
}
