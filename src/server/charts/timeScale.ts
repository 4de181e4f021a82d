// Time as a line on which days of waiting do not hide seconds of work: stretches in which nothing worked get a small fixed
// width, and the stretches of work share the rest.

export interface Work {
  readonly from: number;
  readonly to: number;
}

export interface TimeScale {
  /** Of a time, from 0 to 1. */
  place(at: number): number;
  /** Stretches without work that were made narrow. */
  readonly gaps: readonly { readonly from: number; readonly to: number; readonly ms: number }[];
}

/** A stretch without work is narrowed when it is longer than this part of all the work. */
const LONG = 0.1;
/** What a narrow stretch takes of the line, and all of them together at most. */
const GAP = 0.025;
const ALL_GAPS = 0.3;

export function timeScale(works: readonly Work[]): TimeScale {
  const busy = merge(works);
  const workMs = Math.max(
    1,
    busy.reduce((sum, { from, to }) => sum + to - from, 0),
  );
  const waits = busy.slice(1).map(({ from }, i) => ({ from: busy[i]?.to ?? from, to: from }));
  const long = waits.filter(({ from, to }) => to - from > workMs * LONG);
  const shortMs =
    waits.reduce((sum, { from, to }) => sum + to - from, 0) - long.reduce((sum, w) => sum + w.to - w.from, 0);
  const gap = long.length === 0 ? 0 : Math.min(GAP, ALL_GAPS / long.length);
  const perMs = (1 - gap * long.length) / (workMs + shortMs);
  const start = busy[0]?.from ?? 0;
  const place = (at: number): number => {
    let used = 0;
    let narrow = 0;
    for (const { from, to } of long) {
      if (at <= from) break;
      narrow += gap * Math.min(1, (at - from) / (to - from));
      used += Math.min(at, to) - from;
    }
    return Math.min(1, Math.max(0, (at - start - used) * perMs + narrow));
  };
  return { place, gaps: long.map(({ from, to }) => ({ from: place(from), to: place(to), ms: to - from })) };
}

/** Stretches of work that touch become one. */
function merge(works: readonly Work[]): Work[] {
  const merged: { from: number; to: number }[] = [];
  for (const { from, to } of [...works].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to: Math.max(from, to) });
  }
  return merged;
}
