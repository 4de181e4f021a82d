// The many spellings of one model: with a provider's prefix, with a date, in capitals; and the nearest known spelling
// of a name that nothing knows.

/** A snapshot's date or "latest" at the end of a name: `gpt-4.1-mini-2025-04-14`, `claude-3-5-haiku@20241022`. */
const SNAPSHOT = /[-@](?:20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])|latest)$/;

/** The name, then the name without one prefix after the other: `models/gemini-2.5-flash`, `gemini-2.5-flash`. */
export function withoutPrefixes(name: string): string[] {
  const parts = name.trim().toLowerCase().split("/");
  return parts.map((_, i) => parts.slice(i).join("/")).filter((suffix) => suffix !== "");
}

/** Every spelling under which a user's table may hold the model, the most exact first. */
export function spellings(name: string, provider: string | undefined): string[] {
  const suffixes = withoutPrefixes(name);
  const bare = suffixes.at(-1) ?? "";
  const prefixed = provider === undefined ? suffixes : [...suffixes, `${provider.toLowerCase()}/${bare}`];
  return [...new Set([...prefixed, ...prefixed.map((spelling) => spelling.replace(SNAPSHOT, ""))])];
}

/** The known name that is nearest by edit distance; of two as near, the first. Undefined when none is alike at all. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const wanted = normalize(withoutPrefixes(name).at(-1) ?? "");
  if (wanted === "") return undefined;
  let nearest: string | undefined;
  // A third of the letters may be wrong: past that the suggestion would be a guess.
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, normalize(withoutPrefixes(candidate).at(-1) ?? ""), least);
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** Dots and dashes are what people mix up: `opus-4.1` for `opus-4-1` is no distance at all. */
function normalize(name: string): string {
  return name.toLowerCase().replace(/[._\s]/g, "-");
}

/** Levenshtein's distance, or `limit` when it is no less. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    if (Math.min(...next) >= limit) return limit;
    row = next;
  }
  return Math.min(row[b.length] ?? limit, limit);
}
