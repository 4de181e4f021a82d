// Bars drawn on the server. What they show stands beside them in words too: a picture alone says nothing to a screen reader.
import { type Html, html } from "../pages/html.js";

/** SVG units over the whole width. */
const WIDTH = 1000;

export interface Part {
  readonly from: number;
  readonly to: number;
  readonly class: string;
}

/** Parts of a line from 0 to 1. What is shorter than `least` is drawn so long, to be seen at all. */
export function bar(parts: readonly Part[], options: { track?: boolean; least?: number } = {}): Html {
  const { track = true, least = 0 } = options;
  const rects = parts.map(({ from, to, class: kind }) => {
    const width = Math.max(to - from, least);
    const x = Math.min(from, 1 - width);
    return html`<rect class="${kind}" x="${units(x)}" width="${units(width)}" height="10"/>`;
  });
  return html`<svg class="bar" viewBox="0 0 ${WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">${track ? html`<rect class="track" width="${WIDTH}" height="10"/>` : ""}${rects}</svg>`;
}

function units(part: number): string {
  return (Math.min(1, Math.max(0, part)) * WIDTH).toFixed(1);
}
