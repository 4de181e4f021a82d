// What the pages are made of: escaped templates, times, money, marks of a state.
import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import { formatUsd } from "../../core/price.js";
import { visible } from "../text.js";

/** A piece of a page, escaped. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;
export { html };

/** A thread's page. `.` and `..` would be taken for steps on the way to it. */
export function runPath(threadId: string): string {
  const id = encodeURIComponent(threadId);
  return /^\.{1,2}$/.test(id) ? `/runs?thread=${id}` : `/runs/${id}`;
}

/** A name that somebody chose: it cannot turn the text around it. */
export function name(text: string, max?: number): Html {
  return html`<bdi>${visible(text, max)}</bdi>`;
}

export function dollars(nanoUsd: bigint): string {
  // Cents always, and of what is smaller only what there is.
  return `$${formatUsd(nanoUsd).replace(/(\.\d\d\d*?)0+$/, "$1")}`;
}

/** A time as the page's reader can place it: by the clock in UTC, and how far it is from now. */
export function time(at: Date, now: Date): Html {
  const iso = at.toISOString();
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(0, 16).replace("T", " ")} UTC <span class="soft">(${distance(at, now)})</span></time>`;
}

export function distance(at: Date, now: Date): string {
  const ms = at.getTime() - now.getTime();
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
] as const;

/** The two greatest units: 2 d 3 h, 4 min 10 s. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const first = UNITS.findIndex(([, unit]) => ms >= unit);
  const [unit, size] = UNITS[first] ?? UNITS[3];
  const whole = Math.floor(ms / size);
  const next = UNITS[first + 1];
  const rest = next === undefined ? 0 : Math.floor((ms - whole * size) / next[1]);
  return rest === 0 || next === undefined ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next[0]}`;
}

const TONES: Readonly<Record<string, string>> = {
  waiting: "ask",
  pending: "ask",
  WAITING_HUMAN: "ask",
  running: "live",
  RUNNING: "live",
  due: "due",
  "cancel requested": "due",
  RETRY_SCHEDULED: "due",
  done: "good",
  SUCCEEDED: "good",
  approved: "good",
  edited: "good",
  failed: "bad",
  FAILED_PERMANENT: "bad",
  NEEDS_RECONCILIATION: "bad",
  rejected: "bad",
};

const WORDS: Readonly<Record<string, string>> = {
  WAITING_HUMAN: "waits for a person",
  NEEDS_RECONCILIATION: "outcome unknown",
  FAILED_PERMANENT: "failed",
  RETRY_SCHEDULED: "retry scheduled",
  waiting: "waits for a person",
  pending: "waiting",
};

/** A state, in words, with a colour that says it again. */
export function badge(state: string): Html {
  return html`<span class="badge ${TONES[state] ?? "quiet"}">${WORDS[state] ?? state.toLowerCase()}</span>`;
}

export function csrfField(token: string): Html {
  return html`<input type="hidden" name="csrf" value="${token}">`;
}

/** Pieces that may be missing, one after the other. */
export function when(condition: boolean, piece: () => Html): Html | "" {
  return condition ? piece() : "";
}
