// What a person is asked before something happens. The row in the ledger is the truth, and the interrupt only the pause: a
// decision is one compare-and-set on the row, bound to the exact arguments, and the place that asked reads it when it runs
// again. Exactly one decision wins.
import type { Refused, RunTicket } from "./ledger.js";

export const APPROVAL_STATUSES = [
  "pending",
  "approved",
  "rejected",
  "edited",
  "expired",
  // The place asked for something else, or the thread went on elsewhere.
  "superseded",
  "cancelled",
] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** Who may decide, and what happens by time. */
export interface ApprovalPolicy {
  /** Names of users, and roles as `role:NAME`. @default every user who is known */
  readonly approvers?: readonly string[];
  /** Milliseconds from the request to its deadline; Infinity for none. @default no deadline */
  readonly timeoutMs?: number;
  /** What the deadline decides. The record says `expired` either way. @default "reject" */
  readonly onTimeout?: "reject" | "approve";
  /** Milliseconds from the request to a warning. @default none */
  readonly warnAfterMs?: number;
  /** Who may decide too, one after the other, each `escalateAfterMs` after the one before. */
  readonly escalateTo?: readonly string[];
  /** Milliseconds. Needed with `escalateTo`. */
  readonly escalateAfterMs?: number;
  /** Whether the arguments may be changed by who approves. @default true */
  readonly mayEdit?: boolean;
}

/** Something that a person is asked to allow. */
export interface ApprovalRequest<Args = unknown> {
  /** What would be done: `publish`, or a tool's name. */
  readonly action: string;
  /** Plain data; shown to who decides. */
  readonly args: Args;
  readonly description?: string;
}

/** What came of a request, as the place that asked is told. */
export interface Decision<Args = unknown> {
  readonly status: "approved" | "edited" | "rejected" | "expired";
  /** What may be done now: the request's own arguments, or what they were changed to. */
  readonly args: Args;
  /** Who decided; `system:timeout` for the deadline. */
  readonly by: string;
  readonly comment?: string;
  readonly approvalId: string;
  readonly decidedAt: Date;
  /** Whether it may be done: a deadline decides as `onTimeout` says. */
  readonly allowed: boolean;
}

/** A request with all that is known of it. */
export interface Approval {
  readonly id: string;
  readonly threadId: string;
  readonly node: string;
  readonly toolCallId: string | undefined;
  readonly action: string;
  readonly description: string | undefined;
  /** Undefined where they were stored through a `bodyCodec` that this ledger has not. */
  readonly args: unknown;
  readonly argsHash: string;
  readonly argsSchema: object | undefined;
  readonly mayEdit: boolean;
  readonly approvers: readonly string[] | undefined;
  readonly onTimeout: "reject" | "approve";
  readonly status: ApprovalStatus;
  readonly requestedAt: Date;
  readonly deadlineAt: Date | undefined;
  readonly warnedAt: Date | undefined;
  readonly escalateAt: Date | undefined;
  readonly decidedAt: Date | undefined;
  readonly decidedBy: string | undefined;
  readonly comment: string | undefined;
  readonly editedArgs: unknown;
  readonly usedAt: Date | undefined;
  /** The ledger's clock when this was read. */
  readonly readAt: Date;
}

/** The place that asks. */
export interface ApprovalIntent {
  /** Of the record, where there is none yet. */
  readonly id: string;
  readonly place: string;
  /** The ordinal among equal requests of a task; 0 for tool calls, which their ids tell apart. */
  readonly nth: number;
  readonly node: string;
  readonly checkpointNs: string;
  readonly toolCallId: string | undefined;
  readonly action: string;
  readonly description: string | undefined;
  /** Canonical JSON. */
  readonly args: string;
  readonly argsHash: string;
  readonly argsSchema: object | undefined;
  readonly policy: ApprovalPolicy;
}

/** What somebody says about a request. */
export type Answer =
  | { readonly status: "approved"; readonly comment?: string }
  | { readonly status: "rejected"; readonly comment?: string }
  | { readonly status: "edited"; readonly args: unknown; readonly comment?: string };

export type DecideAnswer =
  | { readonly result: "applied"; readonly approval: Approval }
  /** Somebody or something decided before: `approval` says who, what and when. */
  | { readonly result: "already-decided"; readonly approval: Approval };

/** Who decides, as something that knows them says. */
export interface Decider {
  readonly by: string;
  readonly roles?: readonly string[];
  /** A UUID of the decision: said again under it, it is the decision that was taken, not a second one. @default a new one */
  readonly decisionId?: string;
}

/** The names that a decider goes by in a list of approvers. */
export function namesOf({ by, roles = [] }: Decider): string[] {
  return [by, ...roles.map((role) => `role:${role}`)];
}

/** The places that ask reach the ledger through this. What a run changes it changes only while it has the thread (G2). */
export interface ApprovalLedger {
  /**
   * Records the request, or finds it: the same place and arguments are the same request. A tool call that comes again under
   * another id takes over the request that nobody has gone on with. Refused when the thread is not this run's any more.
   *
   * @param asked the requests that this run has asked already: they are other calls'
   */
  ask(ticket: RunTicket, intent: ApprovalIntent, asked: readonly string[]): Promise<Approval | Refused>;
  find(id: string): Promise<Approval | undefined>;
  /** The open requests of a thread, in order. */
  pending(threadId: string): Promise<readonly Approval[]>;
  decide(id: string, decider: Decider, answer: Answer): Promise<DecideAnswer>;
  /** Notes a decision that was not taken: who tried, and why not. */
  refuse(id: string, by: string, why: string): Promise<void>;
  /** The place goes on with the decision. */
  use(ticket: RunTicket, id: string): Promise<void>;
  /** The request was decided on what the place cannot take; it is asked again. */
  supersede(ticket: RunTicket, id: string, reason: string): Promise<void>;
  /**
   * A run is over: what was asked, or said, at a place that asked for something else this time no longer counts; nor does any
   * open request of a thread that is done.
   */
  closeUnasked(ticket: RunTicket, asked: readonly string[], isDone: boolean): Promise<void>;
  /** The thread goes on elsewhere: what is open, and what nobody has gone on with, no longer counts (G16). */
  leaveAll(threadId: string): Promise<void>;
}

/** The decision on a request; undefined while it is open, or when it no longer counts. */
export function decisionOf(approval: Approval): Decision | undefined {
  const { status, decidedBy, decidedAt, comment, id } = approval;
  if (status === "pending" || status === "superseded" || status === "cancelled") return undefined;
  return {
    status,
    args: status === "edited" ? approval.editedArgs : approval.args,
    by: decidedBy ?? "",
    ...(comment === undefined ? {} : { comment }),
    approvalId: id,
    decidedAt: decidedAt ?? approval.readAt,
    allowed: status === "approved" || status === "edited" || (status === "expired" && approval.onTimeout === "approve"),
  };
}
