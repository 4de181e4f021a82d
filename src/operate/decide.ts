// What people do about requests for approval, from any process: decide, give more time, look.
import { type Answer, type Approval, type ApprovalStatus, type DecideAnswer, namesOf } from "../core/approval.js";
import { isReserved } from "../core/approvalOptions.js";
import { checkDecider, decideRequest } from "../core/decide.js";
import { DecisionRefusedError, InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { LEDGER_PARTS, type Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { listApprovals } from "../postgres/approvalRows.js";
import { extendDeadline } from "../postgres/approvalTimes.js";

export interface DecideRequest {
  readonly approvalId: string;
  /** Who decides, as your login knows them; recorded. */
  readonly by: string;
  /** The roles of who decides: `editor` is on a list of approvers as `role:editor`. */
  readonly roles?: readonly string[];
  readonly decision: Answer;
}

/**
 * Decides on a request for approval. Exactly one decision wins; every other call is told which. The thread is woken in the
 * same transaction: run it again with `null` as input, or have a worker do it.
 *
 * Who calls this vouches for `by` and `roles`.
 *
 * @throws NotFoundError for an unknown id; DecisionRefusedError for somebody who may not decide, which is kept in the
 * history; InvalidOptionError for edited arguments that do not fit. Nothing is changed then.
 * @example
 * await decide(ledger, { approvalId, by: "ann", decision: { status: "approved" } });
 */
export async function decide(ledger: Ledger, request: DecideRequest): Promise<DecideAnswer> {
  const { approvalId, by, roles = [], decision } = request;
  const { status } = (decision ?? {}) as { status?: unknown };
  if (status !== "approved" && status !== "rejected" && status !== "edited") {
    throw new InvalidOptionError('Expected `decision.status` to be "approved", "rejected" or "edited".');
  }
  if (decision.status === "edited" && decision.args === undefined)
    throw new InvalidOptionError("An edit needs the `args` that are allowed.");
  const { approvals } = await ledger[LEDGER_PARTS].open();
  return decideRequest(approvals, approvalId, { by, roles }, decision);
}

export interface ExtendRequest {
  readonly approvalId: string;
  readonly by: string;
  readonly roles?: readonly string[];
  /** Milliseconds on top of the deadline. */
  readonly byMs: number;
  readonly reason?: string;
}

/**
 * Gives a request more time. Only before its deadline: what has expired is decided.
 *
 * @throws NotFoundError for an unknown id, InvalidOptionError for a request without a deadline, DecisionRefusedError where it may
 * not be moved any more, or not by them.
 */
export async function extendApproval(ledger: Ledger, request: ExtendRequest): Promise<Approval> {
  const { approvalId, by, roles = [], byMs, reason } = request;
  checkDecider({ by, roles });
  if (isReserved(by)) throw new DecisionRefusedError(`"${by}" stands for no person, and moves no deadline.`);
  if (!Number.isFinite(byMs) || byMs < 1 || byMs > MAX_MS)
    throw new InvalidOptionError(`Expected \`byMs\` to be milliseconds between 1 and ${MAX_MS}, got ${byMs}.`);
  const names = namesOf({ by, roles });
  const { extended, approval } = await extendDeadline(await databaseOf(ledger), checkId("approvalId", approvalId), {
    byMs,
    by,
    names,
    ...(reason === undefined ? {} : { reason }),
  });
  if (approval === undefined) throw new NotFoundError(`No request for approval has the id "${approvalId}".`);
  if (extended) return approval;
  if (approval.status === "pending" && approval.deadlineAt === undefined)
    throw new InvalidOptionError(`Request ${approvalId} has no deadline, so there is none to extend.`);
  const why =
    approval.status !== "pending"
      ? `it is ${approval.status}`
      : approval.deadlineAt !== undefined && approval.deadlineAt <= approval.readAt
        ? "its deadline is over"
        : `"${by}" is not among its approvers`;
  throw new DecisionRefusedError(`The deadline of request ${approvalId} was not moved: ${why}.`, {
    threadId: approval.threadId,
  });
}

/** A year: more is a mistake in units. */
const MAX_MS = 366 * 24 * 3_600_000;

/** Requests for approval: open ones in the order of asking, all others the newest first. */
export async function approvalsOf(
  ledger: Ledger,
  filter: { status?: ApprovalStatus; threadId?: string; limit?: number } = {},
): Promise<Approval[]> {
  const { limit = 100, ...rest } = filter;
  return listApprovals(await databaseOf(ledger), { ...rest, limit });
}
