// What an edit changes, line by line: the smallest set of lines that go and come.
import { readableJson } from "../text.js";
import { type Html, html } from "./html.js";

interface Line {
  readonly sign: "same" | "out" | "in";
  readonly text: string;
}

/** Beyond this, a table of all pairs of lines would be felt: the old stands above the new then. */
const MAX_PAIRS = 1_000_000;

/** The lines of two values as people read them. */
export function diff(before: unknown, after: unknown): Html {
  const lines = diffLines(readableJson(before).split("\n"), readableJson(after).split("\n"));
  const shown = lines.map(({ sign, text }) => {
    if (sign === "same") return html`<div>  ${text}</div>`;
    return sign === "out"
      ? html`<div class="out"><del aria-label="removed">- ${text}</del></div>`
      : html`<div class="in"><ins aria-label="added">+ ${text}</ins></div>`;
  });
  return html`<div class="diff">${shown}</div>`;
}

export function diffLines(before: readonly string[], after: readonly string[]): Line[] {
  const line = (sign: Line["sign"]) => (text: string) => ({ sign, text });
  if (before.length * after.length > MAX_PAIRS) return [...before.map(line("out")), ...after.map(line("in"))];
  // common[i][j]: how many lines the rests from i and from j have in common.
  const common = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const row = common[i];
      if (row === undefined) continue;
      row[j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: Line[] = [];
  for (let [i, j] = [0, 0]; i < before.length || j < after.length; ) {
    const [old, now] = [before[i], after[j]];
    if (old !== undefined && old === now) {
      lines.push({ sign: "same", text: old });
      i++;
      j++;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: "out", text: old });
      i++;
    } else {
      lines.push({ sign: "in", text: now ?? "" });
      j++;
    }
  }
  return lines;
}
