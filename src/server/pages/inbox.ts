// What waits for a person, the oldest first, and what was decided.
import { APPROVAL_STATUSES, type Approval, type ApprovalStatus } from "../../core/approval.js";
import { plural } from "../text.js";
import type { Visitor } from "../visitor.js";
import { approvalCard } from "./approval.js";
import { type Html, html } from "./html.js";

/** More than anybody reads at once; the rest comes up as these are decided. */
export const INBOX_LIMIT = 50;

export interface InboxView {
  readonly approvals: readonly Approval[];
  readonly status: ApprovalStatus;
  /** Only what the visitor may decide. */
  readonly mine: boolean;
  /** How many wait in all. */
  readonly waiting: number;
  /** Writes that a person must settle. */
  readonly unsettled: number;
  readonly threadId: string | undefined;
}

export function inboxPage(view: InboxView, visitor: Visitor): Html {
  const { approvals, waiting, unsettled } = view;
  const doubt =
    unsettled === 0
      ? ""
      : html`<p class="banner bad">${plural(unsettled, "write has", "writes have")} an outcome that nobody knows. <a href="/runs?state=waiting">See the runs that wait</a></p>`;
  const more = approvals.length < INBOX_LIMIT ? "" : html`<p class="soft">The first ${INBOX_LIMIT} are shown.</p>`;
  return html`<div class="head"><h1>Inbox</h1></div>
<p class="sub">${waiting === 0 ? "Nothing waits for a decision." : `${plural(waiting, "request waits", "requests wait")} for a decision.`}</p>
${doubt}${filters(view)}
${approvals.length === 0 ? empty(view) : approvals.map((approval) => approvalCard(approval, visitor))}${more}`;
}

function filters({ status, mine, threadId }: InboxView): Html {
  const thread = threadId === undefined ? "" : `&thread=${encodeURIComponent(threadId)}`;
  const link = (to: string, text: string, chosen: boolean) =>
    html`<li><a href="${to}"${chosen ? html` aria-current="true"` : ""}>${text}</a></li>`;
  const statuses = APPROVAL_STATUSES.map((one) =>
    link(`/inbox?status=${one}${mine ? "&mine=1" : ""}${thread}`, one === "pending" ? "waiting" : one, one === status),
  );
  return html`<ul class="filters">${statuses}${link(`/inbox?status=${status}${mine ? "" : "&mine=1"}${thread}`, "mine to decide", mine)}</ul>`;
}

function empty({ status, mine }: InboxView): Html {
  const what = status === "pending" ? "All decided" : `None ${status}`;
  const why = mine ? "Nothing here is yours to decide." : "Requests appear here when a graph asks for an approval.";
  return html`<section class="card empty"><h2>${what}</h2><p>${why}</p></section>`;
}
