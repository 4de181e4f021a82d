// What a thread cost: over time, and by where it was spent.

import type { Spending } from "../../postgres/runPages.js";
import type { CostSum, Span } from "../../postgres/trace.js";
import { dollars, type Html, html, name } from "../pages/html.js";
import { plural } from "../text.js";
import { bar } from "./bars.js";

/** In how many parts a thread's time is cut. */
export const TIME_PARTS = 60;

/** The sum of what was paid, as it grew from the first paid call to the last. */
export function costOverTime(spending: readonly Spending[], span: Span): Html {
  const total = spending.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0n);
  const points: string[] = ["0,100"];
  let sum = 0n;
  for (const { part, costNanoUsd } of spending) {
    const x = (at: number) => ((at / TIME_PARTS) * 1000).toFixed(1);
    points.push(`${x(part - 1)},${height(sum, total)}`);
    sum += costNanoUsd;
    points.push(`${x(part)},${height(sum, total)}`);
  }
  points.push(`1000,${height(sum, total)}`);
  const line = points.join(" ");
  const clock = (at: Date) => at.toISOString().slice(0, 16).replace("T", " ");
  return html`<svg class="area" viewBox="0 -2 1000 104" preserveAspectRatio="none" role="img" aria-label="Cost over time, up to ${dollars(total)}">
<line class="base" x1="0" x2="1000" y1="100" y2="100"/><polygon class="fill" points="${line} 1000,100"/><polyline class="line" points="${line}"/></svg>
<div class="axis"><span>${clock(span.from)}</span><span>${dollars(total)} at ${clock(span.to)} UTC</span></div>`;
}

function height(sum: bigint, total: bigint): string {
  return total === 0n ? "100" : (100 - Number((sum * 10_000n) / total) / 100).toFixed(1);
}

/** Sums as shares of the greatest. */
export function costShares(groups: readonly CostSum[]): Html {
  const most = groups.reduce((max, { costNanoUsd }) => ((costNanoUsd ?? 0n) > max ? (costNanoUsd ?? 0n) : max), 1n);
  const rows = groups.map(({ of, calls, costNanoUsd, unpriced }) => {
    const share = Number(((costNanoUsd ?? 0n) * 10_000n) / most) / 10_000;
    const note = unpriced === 0 ? plural(calls, "call") : `${plural(calls, "call")}, ${unpriced} unpriced`;
    return html`<li><div class="row"><span>${name(String(of ?? "—"), 60)} <span class="soft">${note}</span></span><span class="num">${costNanoUsd === undefined ? "unpriced" : dollars(costNanoUsd)}</span></div>${bar([{ from: 0, to: share, class: "llm" }])}</li>`;
  });
  return html`<ul class="shares">${rows}</ul>`;
}
