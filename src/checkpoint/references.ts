// A text that refers to parts, and how long arrays are made of them: 32 neighbours form a slice, 32 slices a larger one, so
// that an array that grows by one member writes a handful of references, however long it is.
import { createHash } from "node:crypto";

/** Characters of a digest: 132 bits of SHA-256. PostgreSQL's `element_refs` counts on it. */
const DIGEST = 22;
const FAN_OUT = 32;

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, DIGEST);
}

/** Part of the thread: stored once under its digest. The text is made when it has to be sent. */
export interface Part {
  readonly digest: string;
  text(): string;
}

/** Members of an array in their order: `count` slices or parts from `start` of the header, or the members themselves. */
export type Run = ["s" | "p", start: number, count: number] | ["i", ...members: unknown[]];

/** Collects what one text refers to. */
export class References {
  readonly #slices: string[] = [];
  readonly #parts: string[] = [];

  get none(): boolean {
    return this.#slices.length === 0 && this.#parts.length === 0;
  }

  part(digest: string): number {
    return this.#parts.push(digest) - 1;
  }

  slice(digest: string): number {
    return this.#slices.push(digest) - 1;
  }

  /** The text with its header. */
  head(body: string): string {
    return `${this.#slices.join("")} ${this.#parts.join("")}\n${body}`;
  }
}

export interface Referring {
  readonly slices: readonly string[];
  readonly parts: readonly string[];
  readonly body: string;
}

/** Takes a text with a header apart. */
export function readReferring(text: string): Referring {
  const end = text.indexOf("\n");
  const [slices, parts] = text.slice(0, Math.max(end, 0)).split(" ");
  if (end < 0 || slices === undefined || parts === undefined) throw new Error("its list of parts cannot be read");
  return { slices: cut(slices), parts: cut(parts), body: text.slice(end + 1) };
}

function cut(digests: string): string[] {
  return Array.from({ length: digests.length / DIGEST }, (_, i) => digests.slice(i * DIGEST, (i + 1) * DIGEST));
}

/** A member of an array: the digest of its part, or its own short text. */
export type Entry = { readonly digest: string } | { readonly text: string };

/** The runs of an array's members, as JSON; slices that it needs are handed to `keep`. */
export function runsOf(entries: readonly Entry[], references: References, keep: (slice: Part) => void): string {
  const levels: string[][] = [];
  const whole = Math.floor(entries.length / FAN_OUT) * FAN_OUT;
  let below: string[] = [];
  for (let i = 0; i < whole; i += FAN_OUT) {
    const inner = new References();
    const text = inner.head(`[${plainRuns(entries.slice(i, i + FAN_OUT), inner)}]`);
    below.push(kept(text, keep));
  }
  while (below.length >= FAN_OUT) {
    const above: string[] = [];
    let i = 0;
    for (; i + FAN_OUT <= below.length; i += FAN_OUT) {
      const inner = new References();
      for (const digest of below.slice(i, i + FAN_OUT)) inner.slice(digest);
      above.push(kept(inner.head(`[["s",0,${FAN_OUT}]]`), keep));
    }
    levels.unshift(below.slice(i));
    below = above;
  }
  levels.unshift(below);
  const slices = levels.flat().map((digest) => references.slice(digest));
  const first = slices.length === 0 ? [] : [`["s",${slices[0]},${slices.length}]`];
  const rest = plainRuns(entries.slice(whole), references);
  return `[${[...first, ...(rest === "" ? [] : [rest])].join(",")}]`;
}

function kept(text: string, keep: (slice: Part) => void): string {
  const digest = digestOf(text);
  keep({ digest, text: () => text });
  return digest;
}

function plainRuns(entries: readonly Entry[], references: References): string {
  const runs: string[] = [];
  for (let i = 0; i < entries.length; ) {
    const from = i;
    const inside = "text" in (entries[i] as Entry);
    const texts: string[] = [];
    let start = 0;
    for (; i < entries.length; i++) {
      const entry = entries[i] as Entry;
      if ("text" in entry !== inside) break;
      if ("text" in entry) texts.push(entry.text);
      else {
        const at = references.part(entry.digest);
        if (i === from) start = at;
      }
    }
    runs.push(inside ? `["i",${texts.join(",")}]` : `["p",${start},${i - from}]`);
  }
  return runs.join(",");
}
