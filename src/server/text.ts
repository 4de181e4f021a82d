// Text that others chose, made safe to look at. Escaping for HTML is the templates' work; this keeps a name from hiding
// what it is: characters that cannot be seen, or that turn the text around them, are shown as what they are.
import { redact } from "../core/failure.js";

// Controls but newline and tab, marks that change the direction of writing, and characters without a width.
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e0fff}]/gu;

/** A name or a line of text: secrets redacted, unseen characters shown, cut at `max` characters. */
export function visible(text: string, max = 200): string {
  const shown = redact(text.slice(0, 4 * max)).replaceAll(UNSEEN, escapeOf);
  return shown.length <= max ? shown : `${shown.slice(0, max - 1).toWellFormed()}…`;
}

function escapeOf(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
}

/** A value as people read it: indented JSON, secrets redacted, unseen characters shown. */
export function readableJson(value: unknown): string {
  return redact(JSON.stringify(value, null, 2) ?? "undefined").replaceAll(UNSEEN, escapeOf);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
