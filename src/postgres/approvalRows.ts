// Reading requests for approval: the row as it stands in PostgreSQL, and what people see of it.
import type { Approval, ApprovalStatus } from "../core/approval.js";
import { BodyCodecError } from "../core/errors.js";
import type { Database } from "./pool.js";

/** What may no longer be used: open requests, and decisions that nobody has gone on with (G16). */
export const OPEN_OR_UNUSED =
  "(a.status = 'pending' or (a.status in ('approved', 'edited', 'expired') and a.used_at is null))";

interface ApprovalRow {
  readonly id: string;
  readonly thread_id: string;
  readonly node: string;
  readonly tool_call_id: string | null;
  readonly action: string;
  readonly description: string | null;
  readonly args: Buffer;
  readonly args_hash: Buffer;
  readonly args_schema: string | null;
  readonly may_edit: boolean;
  readonly approvers: string[] | null;
  readonly on_timeout: "reject" | "approve";
  readonly status: ApprovalStatus;
  readonly requested_at: Date;
  readonly deadline_at: Date | null;
  readonly warned_at: Date | null;
  readonly escalate_at: Date | null;
  readonly decided_at: Date | null;
  readonly decided_by: string | null;
  readonly decision_id: string | null;
  readonly comment: string | null;
  readonly edited_args: Buffer | null;
  readonly used_at: Date | null;
  readonly read_at: Date;
}

const SELECT = `
select a.id, a.thread_id, a.node, a.tool_call_id, a.action, a.description, a.args, a.args_hash, a.args_schema, a.may_edit, a.approvers,
  a.on_timeout, a.status, a.requested_at, a.deadline_at, a.warned_at, a.escalate_at, a.decided_at, a.decided_by, a.decision_id,
  a.comment, a.edited_args, a.used_at, at.now as read_at
from {schema}.approvals a, (select {schema}.ledger_now() as now) at`;

/** @internal With the id of the call that decided it. */
export type ReadApproval = Approval & { readonly decisionId: string | undefined };

export async function findApproval(database: Database, id: string): Promise<ReadApproval | undefined> {
  const [row] = await database.query<ApprovalRow>("approval", `${SELECT} where a.id = $1`, [id]);
  return row && toApproval(row, database);
}

export interface ApprovalFilter {
  readonly status?: ApprovalStatus;
  readonly threadId?: string;
  /** Only what somebody of these names may decide. */
  readonly names?: readonly string[];
  readonly limit: number;
}

// Of these names, or for everybody who is known.
const MINE = "($3::text[] is null or a.approvers is null or a.approvers && $3)";
/** Open ones in the order of asking; the partial index of what waits is used only where the statement names the status. */
const OPEN_ONES = `${SELECT} where a.status = 'pending' and ($2::text is null or a.thread_id = $2) and ${MINE} order by a.seq limit $1`;
const NEWEST = `${SELECT} where ($2::text is null or a.thread_id = $2) and ${MINE} and ($4::text is null or a.status = $4) order by a.seq desc limit $1`;

/** Requests for approval: open ones in the order of asking, all others the newest first. */
export async function listApprovals(database: Database, filter: ApprovalFilter): Promise<Approval[]> {
  const { status, threadId = null, names = null, limit } = filter;
  const rows =
    status === "pending"
      ? await database.query<ApprovalRow>("approvals_open", OPEN_ONES, [limit, threadId, names])
      : await database.query<ApprovalRow>("approvals_newest", NEWEST, [limit, threadId, names, status ?? null]);
  return rows.map((row) => toApproval(row, database));
}

/** How many requests wait for somebody. */
export async function countPending(database: Database): Promise<number> {
  const [row] = await database.query<{ waiting: number }>(
    "approvals_count",
    "select count(*)::int as waiting from {schema}.approvals where status = 'pending'",
    [],
  );
  return row?.waiting ?? 0;
}

export interface ApprovalEvent {
  readonly kind: string;
  readonly by: string;
  readonly detail: string | undefined;
  readonly at: Date;
}

/** All that happened to a request, refused decisions included. */
export async function approvalHistory(database: Database, id: string): Promise<ApprovalEvent[]> {
  const rows = await database.query<{ kind: string; by_whom: string; detail: string | null; at: Date }>(
    "approval_history",
    "select kind, by_whom, detail, at from {schema}.approval_events where approval_id = $1 order by id",
    [id],
  );
  return rows.map(({ kind, by_whom, detail, at }) => ({ kind, by: by_whom, detail: detail ?? undefined, at }));
}

function toApproval(row: ApprovalRow, { bodies }: Database): ReadApproval {
  const body = (stored: Buffer): unknown => {
    try {
      return JSON.parse(bodies.fromStored(stored));
    } catch (error) {
      // Who may not read the arguments may still see that something waits.
      if (error instanceof BodyCodecError) return undefined;
      throw error;
    }
  };
  return {
    id: row.id,
    threadId: row.thread_id,
    node: row.node,
    toolCallId: row.tool_call_id ?? undefined,
    action: row.action,
    description: row.description ?? undefined,
    args: body(row.args),
    argsHash: row.args_hash.toString("hex"),
    argsSchema: row.args_schema === null ? undefined : (JSON.parse(row.args_schema) as object),
    mayEdit: row.may_edit,
    approvers: row.approvers ?? undefined,
    onTimeout: row.on_timeout,
    status: row.status,
    requestedAt: row.requested_at,
    deadlineAt: row.deadline_at ?? undefined,
    warnedAt: row.warned_at ?? undefined,
    escalateAt: row.escalate_at ?? undefined,
    decidedAt: row.decided_at ?? undefined,
    decidedBy: row.decided_by ?? undefined,
    decisionId: row.decision_id ?? undefined,
    comment: row.comment ?? undefined,
    editedArgs: row.edited_args === null ? undefined : body(row.edited_args),
    usedAt: row.used_at ?? undefined,
    readAt: row.read_at,
  };
}
