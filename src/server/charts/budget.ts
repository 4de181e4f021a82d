// A budget's limits as bars: what is spent, what calls under way hold, what is left.
import type { BudgetState, StoredLimits } from "../../core/budget.js";
import { dollars, duration, type Html, html } from "../pages/html.js";
import { bar } from "./bars.js";

const LIMITS = {
  nanoUsd: "dollars",
  tokens: "tokens",
  modelCalls: "model calls",
  toolCalls: "tool calls",
  iterations: "supersteps",
  activeMs: "time of work",
} as const;

type Limit = keyof typeof LIMITS;

interface Level {
  readonly name: Limit;
  readonly allowed: number | bigint;
  readonly spent: number | bigint;
  readonly held: number | bigint;
}

/** Every limit of a scope, with its bar. */
export function budgetBars(state: BudgetState): Html {
  const { deadline } = state.allowed;
  return html`${levelsOf(state).map(meter)}${
    deadline === undefined
      ? ""
      : html`<p class="small">No call starts from ${deadline.toISOString().slice(0, 16).replace("T", " ")} UTC on.</p>`
  }`;
}

/** The limit of which the least is left, as a bar and a word; nothing for a scope without limits. */
export function scarcest(state: BudgetState): Html | undefined {
  const [first] = levelsOf(state).sort((a, b) => ratio(b.spent, b.allowed) - ratio(a.spent, a.allowed));
  if (first === undefined) return undefined;
  return html`${levelBar(first)}<span class="small soft num">${amount(first.name, first.spent)} of ${amount(first.name, first.allowed)}${first.name === "nanoUsd" ? "" : ` ${LIMITS[first.name]}`}</span>`;
}

function levelsOf({ allowed, spent, reserved }: BudgetState): Level[] {
  return (Object.keys(LIMITS) as Limit[]).flatMap((name) => {
    const limit: StoredLimits[Limit] = allowed[name];
    const held = name === "iterations" || name === "activeMs" ? 0 : reserved[name];
    return limit === undefined ? [] : [{ name, allowed: limit, spent: spent[name], held }];
  });
}

function meter(level: Level): Html {
  const { name, allowed, spent, held } = level;
  const text = `${amount(name, spent)} of ${amount(name, allowed)}${held > 0 ? `, ${amount(name, held)} held` : ""}`;
  return html`<div class="meter"><div class="row"><span>${LIMITS[name]}</span><span class="num">${text}</span></div>${levelBar(level)}</div>`;
}

function levelBar({ allowed, spent, held }: Level): Html {
  const used = Math.min(1, ratio(spent, allowed));
  const kind = used >= 1 ? "spent out" : used > 0.8 ? "spent low" : "spent";
  const both = Math.min(1, used + ratio(held, allowed));
  return bar([
    { from: used, to: both, class: "held" },
    { from: 0, to: used, class: kind },
  ]);
}

function ratio(part: number | bigint, whole: number | bigint): number {
  return Number(whole) === 0 ? 1 : Number(part) / Number(whole);
}

function amount(name: Limit, value: number | bigint): string {
  if (name === "nanoUsd") return dollars(BigInt(value));
  if (name === "activeMs") return duration(Number(value));
  return Number(value).toLocaleString("en");
}
