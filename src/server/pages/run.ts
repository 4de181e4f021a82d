// One thread: what it did, what it waits for, what it cost, what it may still spend.
import type { Approval } from "../../core/approval.js";
import { type BudgetState, LIMIT_NAMES } from "../../core/budget.js";
import type { StepRecord } from "../../core/ledger.js";
import type { BudgetHistoryRow } from "../../postgres/budgetRows.js";
import type { DuplicateEffect } from "../../postgres/lateReceipts.js";
import type { CurrentStep, Spending } from "../../postgres/runPages.js";
import type { ThreadSummary } from "../../postgres/runs.js";
import type { CostSum, Span, TracedStep } from "../../postgres/trace.js";
import { budgetBars } from "../charts/budget.js";
import { costOverTime, costShares } from "../charts/costs.js";
import { timeline } from "../charts/timeline.js";
import { plural, visible } from "../text.js";
import type { Visitor } from "../visitor.js";
import { approvalCard, isOpen } from "./approval.js";
import { badge, csrfField, dollars, type Html, html, name, runPath, time, when } from "./html.js";
import { noteOf } from "./runs.js";
import { unsettledSection } from "./unsettled.js";

/** Rows of the timeline on one page. */
export const STEPS_PER_PAGE = 200;

export interface RunView {
  readonly thread: ThreadSummary;
  readonly current: CurrentStep | undefined;
  readonly steps: readonly TracedStep[];
  /** How many steps come before the ones shown. */
  readonly after: number;
  readonly unsettled: readonly StepRecord[];
  readonly duplicates: readonly DuplicateEffect[];
  readonly approvals: readonly Approval[];
  readonly budgets: readonly BudgetState[];
  readonly budgetHistory: readonly BudgetHistoryRow[];
  readonly costs: readonly CostSum[];
  readonly spending: readonly Spending[];
  readonly paid: Span | undefined;
  /** How many of its writes stand. */
  readonly committed: number;
  readonly now: Date;
}

export function runPage(view: RunView, visitor: Visitor): Html {
  const { thread, current, unsettled, duplicates, approvals, now } = view;
  const note = noteOf(thread, current, now);
  const open = approvals.filter(isOpen);
  return html`<div class="head"><h1>${name(thread.threadId, 300)}</h1>${badge(thread.state)}</div>
<p class="sub">${note === "" ? "" : html`${note} · `}${plural(thread.steps, "step")} · ${dollars(thread.costNanoUsd)}${thread.unpricedCalls === 0 ? "" : ` and ${thread.unpricedCalls} unpriced`} · changed ${time(thread.updatedAt, now)}</p>
${failedSection(view, visitor)}${cancelledSection(view, visitor)}
${unsettledSection(unsettled, duplicates, visitor)}
${open.map((approval) => approvalCard(approval, visitor))}
${budgetSection(view, visitor)}
${costSection(view)}
${stepSection(view)}
${decidedSection(approvals)}
${cancelSection(view, visitor)}`;
}

function stepSection({ thread, steps, after }: RunView): Html {
  if (steps.length === 0)
    return html`<section class="card empty"><h2>No steps</h2><p>This thread has recorded none yet.</p></section>`;
  const to = (start: number) =>
    `${runPath(thread.threadId)}${runPath(thread.threadId).includes("?") ? "&" : "?"}after=${start}`;
  const shown = after + steps.length;
  const pager =
    after === 0 && shown >= thread.steps
      ? ""
      : html`<nav class="pager" aria-label="More steps"><span>${after > 0 ? html`<a href="${to(Math.max(0, after - STEPS_PER_PAGE))}">← Earlier</a>` : ""}</span><span class="soft">${after + 1}–${shown} of ${thread.steps}</span><span>${shown < thread.steps ? html`<a href="${to(shown)}">Later →</a>` : ""}</span></nav>`;
  return html`<section class="card"><h2>Steps</h2>${timeline(steps)}${pager}</section>`;
}

function costSection({ costs, spending, paid }: RunView): Html | "" {
  if (costs.length === 0) return "";
  const curve =
    paid === undefined || spending.length === 0
      ? html`<p class="soft">No call has a known price.</p>`
      : costOverTime(spending, paid);
  return html`<section class="card"><h2>Cost</h2><div class="split"><div>${curve}</div><div>${costShares(costs)}</div></div></section>`;
}

function budgetSection({ budgets, budgetHistory, thread, now }: RunView, visitor: Visitor): Html | "" {
  if (budgets.length === 0) return "";
  const history = budgetHistory.slice(-20).reverse();
  return html`<section class="card"><h2>Budget</h2>${budgets.map(
    (budget) => html`${when(budgets.length > 1, () => html`<h3>${name(scopeName(budget), 120)}</h3>`)}
${when(budget.exceeded, () => html`<p class="banner bad">A call was refused: this budget is used up.</p>`)}
${budgetBars(budget)}${raiseForm(budget, thread.threadId, visitor)}`,
  )}
${when(history.length > 0, () => html`<details class="more"><summary>History</summary><dl class="facts">${history.map((event) => html`<dt>${time(event.at, now)}</dt><dd>${event.kind}${event.by === null ? "" : html` by ${name(event.by, 80)}`} <span class="soft">${name(detailOf(event), 300)}</span></dd>`)}</dl></details>`)}</section>`;
}

function scopeName({ scope, threadId }: BudgetState): string {
  return scope === threadId ? "the whole thread" : scope;
}

function detailOf({ detail }: BudgetHistoryRow): string {
  return Object.entries(detail)
    .map(([key, value]) => `${key} ${String(value)}`)
    .join(", ");
}

const LIMIT_LABELS: Readonly<Record<(typeof LIMIT_NAMES)[number], string>> = {
  usd: "Dollars",
  tokens: "Tokens",
  modelCalls: "Model calls",
  toolCalls: "Tool calls",
  iterations: "Supersteps",
  activeMs: "Milliseconds of work",
};

function raiseForm({ scope, allowed }: BudgetState, threadId: string, visitor: Visitor): Html | "" {
  const limited = LIMIT_NAMES.filter((one) => allowed[one === "usd" ? "nanoUsd" : one] !== undefined);
  const { deadline } = allowed;
  if (limited.length === 0 && deadline === undefined) return "";
  const later =
    deadline === undefined
      ? ""
      : html`<label>Later deadline <span class="soft">(UTC)</span><input type="datetime-local" name="deadline"></label>`;
  return html`<details class="more"><summary>Allow more</summary><form method="post" action="/inbox/raise">${csrfField(visitor.csrf)}
<input type="hidden" name="thread" value="${threadId}"><input type="hidden" name="scope" value="${scope}">
<div class="fields">${limited.map((one) => html`<label>${LIMIT_LABELS[one]} more<input name="${one}" inputmode="decimal" autocomplete="off" placeholder="0"></label>`)}${later}</div>
<label>Reason <span class="soft">(recorded)</span><input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons"><button>Allow more</button></div></form></details>`;
}

function decidedSection(approvals: readonly Approval[]): Html | "" {
  const decided = approvals.filter((approval) => !isOpen(approval));
  if (decided.length === 0) return "";
  return html`<section class="card"><h2>Approvals</h2><dl class="facts">${decided.map(
    ({ id, action, status, decidedBy, decidedAt, readAt }) =>
      html`<dt><a href="/inbox/approvals/${encodeURIComponent(id)}">${name(action, 80)}</a></dt><dd>${badge(status)} ${decidedBy === undefined ? "" : name(decidedBy, 80)} ${decidedAt === undefined ? "" : time(decidedAt, readAt)}</dd>`,
  )}</dl></section>`;
}

/** What a cancel does not take back. */
function standing({ thread, committed }: RunView): Html | "" {
  if (committed === 0) return "";
  return html`<p>${plural(committed, "write stands", "writes stand")} that it has made. What undoes them: <span class="mono">longhaul compensate ${name(thread.threadId, 80)} --graph &lt;file:export&gt;</span></p>`;
}

/** Where a run may still be stopped. */
function cancelSection(view: RunView, visitor: Visitor): Html | "" {
  const { state, threadId } = view.thread;
  if (state !== "running" && state !== "waiting" && state !== "due") return "";
  return html`<section class="card"><details class="more"><summary>Cancel this thread</summary>
<p>No step starts after it. What was sent already may still happen: it is then recorded, or asked about.</p>${standing(view)}
<form method="post" action="/inbox/cancel">${csrfField(visitor.csrf)}<input type="hidden" name="thread" value="${threadId}">
<label>Reason <span class="soft">(recorded)</span><input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons"><button class="danger">Cancel it</button></div></form></details></section>`;
}

function cancelledSection(view: RunView, visitor: Visitor): Html | "" {
  const { thread, now } = view;
  const { cancel, state, threadId } = thread;
  if (cancel === undefined) return "";
  const { by, at, reason } = cancel;
  const goOn =
    state === "cancelled"
      ? html`<form method="post" action="/inbox/redrive">${csrfField(visitor.csrf)}<input type="hidden" name="thread" value="${threadId}"><div class="buttons"><button>Let it go on</button></div></form>`
      : html`<p>Its run starts nothing more, and is being told to stop.</p>`;
  return html`<section class="card"><h2>Cancelled</h2><p>By ${name(by, 80)} ${time(at, now)}${reason === undefined ? "" : html`: ${name(reason, 500)}`}</p>${standing(view)}${goOn}</section>`;
}

function failedSection({ thread }: RunView, visitor: Visitor): Html | "" {
  if (thread.state !== "failed") return "";
  const { error } = thread;
  return html`<section class="card doubt"><h2>Failed</h2>
<p>${error === undefined ? "" : html`<strong>${name(error.name, 120)}</strong>: ${name(error.message, 500)} `}</p><p>When the cause is mended, let it go on from the failed step; everything that succeeded stays.</p>
<form method="post" action="/inbox/redrive">${csrfField(visitor.csrf)}<input type="hidden" name="thread" value="${thread.threadId}">
<label>Reason <span class="soft">(recorded)</span><input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons"><button>Let it go on</button></div></form></section>`;
}

/** For the head of a page: a thread in a few words. */
export function runTitle({ threadId }: ThreadSummary): string {
  return visible(threadId, 80);
}
