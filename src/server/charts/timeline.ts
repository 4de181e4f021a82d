// The steps of a thread on a line of time: a row a step, with its bar, what it took and what it cost. Nothing of what a step
// was given or came back with is here.
import type { TracedStep } from "../../postgres/trace.js";
import { badge, dollars, duration, type Html, html, name } from "../pages/html.js";
import { bar } from "./bars.js";
import { type TimeScale, timeScale } from "./timeScale.js";

/** A bar is never thinner than this part of the line. */
const LEAST = 0.004;

export function timeline(steps: readonly TracedStep[]): Html {
  const scale = timeScale(steps.map(({ startedAt, activeUntil }) => ({ from: +startedAt, to: +activeUntil })));
  return html`${legend()}<ol class="timeline">${steps.map((step) => row(step, scale))}</ol>${axis(steps, scale)}`;
}

function row(step: TracedStep, scale: TimeScale): Html {
  const { number, node, name: own, usage, kind, startedAt, activeUntil, endedAt } = step;
  const parts = [
    ...scale.gaps.map(({ from, to }) => ({ from, to, class: "gap" })),
    { from: scale.place(+startedAt), to: scale.place(+activeUntil), class: looks(step) },
  ];
  const took = endedAt === undefined ? "open" : duration(+endedAt - +startedAt);
  const what = kind === "llm" ? (usage?.model ?? own) : own;
  return html`<li><details><summary><span class="n">${number}</span><span class="what">${name(what, 60)} <span class="soft">${name(node, 40)}</span></span><span class="chart">${bar(parts, { track: false, least: LEAST })}</span><span class="took">${took}</span><span class="paid">${costOf(step)}</span></summary>${facts(step)}</details></li>`;
}

function looks({ state, kind, effect }: TracedStep): string {
  const wrong = state === "NEEDS_RECONCILIATION" || state === "FAILED_PERMANENT" ? " wrong" : "";
  const open = state === "RUNNING" || state === "WAITING_HUMAN" || state === "RETRY_SCHEDULED" ? " open" : "";
  return `${kind === "llm" ? "llm" : effect}${open}${wrong}`;
}

function costOf({ usage }: TracedStep): string {
  if (usage === undefined) return "";
  return usage.costNanoUsd === undefined ? "unpriced" : dollars(usage.costNanoUsd);
}

function facts(step: TracedStep): Html {
  const { key, state, attempt, failures, superstep, startedAt, endedAt, usage, kind, effect } = step;
  const ended = endedAt === undefined ? "" : ` – ${endedAt.toISOString().slice(11, 19)}`;
  return html`<dl class="facts">
<dt>State</dt><dd>${badge(state)}</dd>
<dt>Kind</dt><dd>${kind === "llm" ? "model call" : `${kind}, ${effect}`}, superstep ${superstep}</dd>
<dt>Attempts</dt><dd>${attempt}${failures === 0 ? "" : html`, of which ${failures} failed`}</dd>
<dt>When (UTC)</dt><dd>${startedAt.toISOString().slice(0, 19).replace("T", " ")}${ended}</dd>
${usage === undefined ? "" : html`<dt>Tokens</dt><dd>${usage.inputTokens} in, ${usage.outputTokens} out${usage.estimated ? ", estimated" : ""}</dd>`}
<dt>Key</dt><dd class="mono">${key}</dd></dl>`;
}

function axis(steps: readonly TracedStep[], { gaps }: TimeScale): Html {
  const first = Math.min(...steps.map(({ startedAt }) => +startedAt));
  const last = Math.max(...steps.map(({ activeUntil }) => +activeUntil));
  const short = gaps.slice(0, 4).map(({ ms }) => duration(ms));
  const more = gaps.length > short.length ? `, and ${gaps.length - short.length} more` : "";
  const waits =
    gaps.length === 0
      ? ""
      : html`<p class="small soft">Grey bands are waits, drawn short: ${short.join(", ")}${more}.</p>`;
  return html`<div class="axis"><span>${clock(first)}</span><span>${clock(last)} UTC</span></div>${waits}`;
}

function clock(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace("T", " ");
}

function legend(): Html {
  const key = (kind: string, text: string) =>
    html`<span><svg class="bar" viewBox="0 0 10 10" aria-hidden="true"><rect class="${kind}" width="10" height="10"/></svg>${text}</span>`;
  return html`<p class="legend">${key("llm", "model call")}${key("read", "read")}${key("write", "write")}${key("wrong", "failed or unknown")}</p>`;
}
