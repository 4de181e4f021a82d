// All threads, the one that changed last first: what each is doing, what it may still spend, what it waits for.
import type { BudgetState } from "../../core/budget.js";
import type { CurrentStep } from "../../postgres/runPages.js";
import type { RunState, ThreadSummary } from "../../postgres/runs.js";
import { scarcest } from "../charts/budget.js";
import { plural, visible } from "../text.js";
import { badge, distance, dollars, type Html, html, name, runPath } from "./html.js";

export const RUN_STATES: readonly RunState[] = [
  "running",
  "waiting",
  "due",
  "failed",
  "done",
  "cancel requested",
  "cancelled",
];

/** As many as fit on a page. */
export const RUNS_PER_PAGE = 50;

export interface RunsView {
  readonly threads: readonly ThreadSummary[];
  readonly budgets: ReadonlyMap<string, BudgetState>;
  readonly current: ReadonlyMap<string, CurrentStep>;
  readonly counts: ReadonlyMap<RunState, number>;
  readonly state: RunState | undefined;
  readonly page: number;
  readonly now: Date;
}

export function runsPage(view: RunsView): Html {
  const { threads, state } = view;
  return html`<div class="head"><h1>Runs</h1></div>
${filters(view)}
${
  threads.length === 0
    ? html`<section class="card empty"><h2>${state === undefined ? "No thread has run yet" : `No thread is ${state}`}</h2><p>Threads of durable graphs appear here as soon as they start.</p></section>`
    : html`<section class="card"><ul class="runs">${threads.map((thread) => row(thread, view))}</ul></section>`
}
${pager(view)}`;
}

function filters({ state, counts }: RunsView): Html {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const link = (to: string, text: string, count: number, chosen: boolean) =>
    html`<li><a href="${to}"${chosen ? html` aria-current="true"` : ""}>${text} ${count}</a></li>`;
  const states = RUN_STATES.filter((one) => counts.has(one) || one === state);
  return html`<ul class="filters">${link("/runs", "all", total, state === undefined)}${states.map((one) => link(`/runs?state=${encodeURIComponent(one)}`, one, counts.get(one) ?? 0, one === state))}</ul>`;
}

function row(thread: ThreadSummary, { budgets, current, now }: RunsView): Html {
  const { threadId, state, steps, costNanoUsd, unpricedCalls, updatedAt } = thread;
  const budget = budgets.get(threadId);
  const step = current.get(threadId);
  const unpriced = unpricedCalls === 0 ? "" : html`<br><span class="small soft">+ ${unpricedCalls} unpriced</span>`;
  return html`<li><a class="run" href="${runPath(threadId)}">
<span><span class="id">${name(threadId, 80)}</span><br><span class="note">${noteOf(thread, step, now) || `${plural(steps, "step")}, changed ${distance(updatedAt, now)}`}</span></span>
<span>${badge(state)}</span>
<span class="budget">${(budget && scarcest(budget)) ?? ""}</span>
<span class="cost">${dollars(costNanoUsd)}${unpriced}</span></a></li>`;
}

/** What a thread does now, or waits for. Never what a provider said: that may be anything. */
export function noteOf(thread: ThreadSummary, step: CurrentStep | undefined, now: Date): string {
  const { state, dueAt, dueReason, error, holder } = thread;
  const at = step === undefined ? "" : `${visible(step.node, 40)} › ${visible(step.name, 60)}`;
  if (state === "running")
    return `${at}${holder === undefined ? "" : `, process ${holder.pid} on ${visible(holder.host, 60)}`}`;
  if (dueAt !== undefined) return `due ${distance(dueAt, now)}: ${visible(dueReason ?? "", 80)}`;
  if (state === "due") return at === "" ? "its process is gone" : `its process is gone, at ${at}`;
  if (state === "failed" && error !== undefined)
    return `failed: ${visible(error.code ?? error.name, 60)}${at === "" ? "" : `, at ${at}`}`;
  if (state === "waiting" && error?.code === "BUDGET_EXCEEDED")
    return `its budget is used up${at === "" ? "" : `, after ${at}`}`;
  if (state === "waiting") return at === "" ? "" : `waits, after ${at}`;
  return "";
}

function pager({ threads, page, state }: RunsView): Html {
  const to = (n: number) => `/runs?page=${n}${state === undefined ? "" : `&state=${encodeURIComponent(state)}`}`;
  return html`<nav class="pager" aria-label="More runs"><span>${page > 1 ? html`<a rel="prev" href="${to(page - 1)}">← Newer</a>` : ""}</span><span>${threads.length === RUNS_PER_PAGE ? html`<a rel="next" href="${to(page + 1)}">Older →</a>` : ""}</span></nav>`;
}
