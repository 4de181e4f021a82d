// A request for approval: what would be done, who may say so, how long there is, and the forms that say it.
import { type Approval, namesOf } from "../../core/approval.js";
import type { ApprovalEvent } from "../../postgres/approvalRows.js";
import { readableJson, visible } from "../text.js";
import type { User } from "../user.js";
import type { Visitor } from "../visitor.js";
import { diff } from "./diff.js";
import { badge, csrfField, duration, type Html, html, name, runPath, time, when } from "./html.js";

export function approvalPath(id: string): string {
  return `/inbox/approvals/${encodeURIComponent(id)}`;
}

export function mayDecide({ id, roles = [] }: User, { approvers }: Approval): boolean {
  return approvers === undefined || namesOf({ by: id, roles }).some((one) => approvers.includes(one));
}

/** Open, and its time is not over: nobody may have swept since. */
export function isOpen({ status, deadlineAt, readAt }: Approval): boolean {
  return status === "pending" && (deadlineAt === undefined || deadlineAt > readAt);
}

/** A request on the list: enough to decide the plain ones at once. */
export function approvalCard(approval: Approval, visitor: Visitor): Html {
  const { id, action, description, status: is } = approval;
  return html`<section class="card${isOpen(approval) ? " asks" : ""}">
<div class="row"><h2><a href="${approvalPath(id)}">${name(action, 120)}</a></h2>${status(approval)}</div>
<p class="small soft">${is === "pending" ? html`${deadlineText(approval)} · ` : ""}asked ${time(approval.requestedAt, approval.readAt)} by <a href="${runPath(approval.threadId)}">${name(approval.threadId, 60)}</a> › ${name(approval.node, 60)}</p>
${when(description !== undefined, () => html`<p>${name(description ?? "", 400)}</p>`)}
<details class="more"${isShort(approval.args) ? html` open` : ""}><summary>Arguments</summary>${argumentsOf(approval.args)}</details>
${isOpen(approval) ? decideForm(approval, visitor) : outcome(approval)}
</section>`;
}

/** A request with its whole history. */
export function approvalPage(approval: Approval, history: readonly ApprovalEvent[], visitor: Visitor): Html {
  const { action, description, threadId, node, approvers, requestedAt, readAt, argsHash, status: is } = approval;
  const open = isOpen(approval);
  return html`<div class="head"><h1>${name(action, 200)}</h1>${status(approval)}</div>
<p class="sub">${is === "pending" ? deadlineText(approval) : ""}</p>
<section class="card${open ? " asks" : ""}">
${when(description !== undefined, () => html`<p class="prewrap">${name(description ?? "", 20_000)}</p>`)}
<h2>Arguments</h2>
${is === "edited" ? diff(approval.args, approval.editedArgs) : argumentsOf(approval.args)}
${open ? html`${decideForm(approval, visitor)}${when(approval.mayEdit && approval.args !== undefined && mayDecide(visitor.user, approval), () => editForm(approval, visitor))}${when(approval.deadlineAt !== undefined && mayDecide(visitor.user, approval), () => extendForm(approval, visitor))}` : outcome(approval)}
<dl class="facts">
<dt>Asked by</dt><dd><a href="${runPath(threadId)}">${name(threadId)}</a> › ${name(node)}</dd>
<dt>Asked</dt><dd>${time(requestedAt, readAt)}</dd>
<dt>May decide</dt><dd>${approvers === undefined ? "everybody who is known" : approvers.map((one, i) => html`${i === 0 ? "" : ", "}${name(one, 80)}`)}</dd>
<dt>Hash of the arguments</dt><dd class="mono">${argsHash}</dd></dl>
</section>
<section class="card"><h2>History</h2>${historyOf(history, readAt)}</section>`;
}

/** What an edit would change, before it is decided. */
export function reviewPage(approval: Approval, args: unknown, comment: string, visitor: Visitor): Html {
  return html`<div class="head"><h1>${name(approval.action, 200)}</h1><span class="badge ask">not decided yet</span></div>
<p class="sub">This is what your edit changes. It is approved with the next button, not before.</p>
<section class="card asks">${diff(approval.args, args)}
<form method="post" action="${approvalPath(approval.id)}/decide">${csrfField(visitor.csrf)}
<input type="hidden" name="status" value="edited"><input type="hidden" name="args" value="${JSON.stringify(args)}">
<label>Comment <span class="soft">(the agent is told)</span><input name="comment" value="${comment}" maxlength="2000"></label>
<div class="buttons"><button class="primary">Approve with these changes</button><a href="${approvalPath(approval.id)}">Back</a></div></form></section>`;
}

function status(approval: Approval): Html {
  return approval.status === "pending" && !isOpen(approval) ? badge("time is over") : badge(approval.status);
}

/** How long there is, and what happens then. */
function deadlineText(approval: Approval): Html {
  const { deadlineAt, readAt, onTimeout } = approval;
  if (deadlineAt === undefined) return html`No deadline`;
  const left = deadlineAt.getTime() - readAt.getTime();
  const then = onTimeout === "approve" ? "it is allowed" : "it is refused";
  if (left <= 0) return html`<strong>Time is over</strong>: ${then}`;
  return html`<strong>${duration(left)} left</strong>, then ${then}`;
}

/** Who decides has what they decide on before their eyes; only what would push the rest away is folded. */
function isShort(args: unknown): boolean {
  return readableJson(args).length < 1500;
}

function argumentsOf(args: unknown): Html {
  if (args === undefined)
    return html`<p class="soft">They are stored through a <span class="mono">bodyCodec</span> that this server does not have.</p>`;
  return html`<pre>${readableJson(args)}</pre>`;
}

function decideForm(approval: Approval, visitor: Visitor): Html {
  if (!mayDecide(visitor.user, approval)) {
    return html`<p class="soft">Waits for ${(approval.approvers ?? []).map((one, i) => html`${i === 0 ? "" : " or "}${name(one, 80)}`)}; you are ${name(visitor.user.id, 80)}.</p>`;
  }
  if (approval.args === undefined)
    return html`<p class="soft">Decide where the arguments can be read: what nobody sees, nobody should allow.</p>`;
  return html`<form method="post" action="${approvalPath(approval.id)}/decide">${csrfField(visitor.csrf)}
<label>Comment <span class="soft">(the agent is told)</span><input name="comment" maxlength="2000" autocomplete="off"></label>
<div class="buttons"><button class="primary" name="status" value="approved">Approve</button><button class="danger" name="status" value="rejected">Reject</button></div></form>`;
}

function editForm(approval: Approval, visitor: Visitor): Html {
  const exact = JSON.stringify(approval.args, null, 2);
  // What the page does not show cannot be sent back unchanged.
  if (readableJson(approval.args) !== exact) {
    return html`<p class="small soft">These arguments hold something that this page does not show, such as a key. Change them by <span class="mono">longhaul approvals edit</span>.</p>`;
  }
  return html`<details class="more"><summary>Change the arguments</summary>
<form method="post" action="${approvalPath(approval.id)}/review">${csrfField(visitor.csrf)}
<label>Arguments as JSON<textarea class="code" name="args" spellcheck="false" required>
${exact}</textarea></label>
<label>Comment <span class="soft">(the agent is told)</span><input name="comment" maxlength="2000" autocomplete="off"></label>
<div class="buttons"><button>See what changes</button></div></form></details>`;
}

function extendForm({ id }: Approval, visitor: Visitor): Html {
  return html`<details class="more"><summary>Give it more time</summary>
<form method="post" action="${approvalPath(id)}/extend">${csrfField(visitor.csrf)}
<label>Hours more<input name="hours" inputmode="decimal" autocomplete="off" required placeholder="24"></label>
<label>Reason <span class="soft">(recorded)</span><input name="reason" maxlength="300" autocomplete="off"></label>
<div class="buttons"><button>Move the deadline</button></div></form></details>`;
}

function outcome({ status: is, decidedBy, decidedAt, comment, usedAt, readAt }: Approval): Html {
  if (is === "pending") return html`<p class="soft">Its deadline decides; the next sweep records it.</p>`;
  const by = decidedBy === undefined ? "" : html` by ${name(decidedBy, 80)}`;
  const said = comment === undefined ? "" : html`<p>“${name(comment, 2000)}”</p>`;
  const used = usedAt === undefined ? "" : html`, and the thread went on with it`;
  return html`<p>${visible(is)}${by}${decidedAt === undefined ? "" : html` ${time(decidedAt, readAt)}`}${used}.</p>${said}`;
}

function historyOf(history: readonly ApprovalEvent[], now: Date): Html {
  return html`<dl class="facts">${history.map(
    ({ kind, by, detail, at }) =>
      html`<dt>${time(at, now)}</dt><dd>${kind} by ${name(by, 80)}${detail === undefined ? "" : html`: ${name(detail, 500)}`}</dd>`,
  )}</dl>`;
}
