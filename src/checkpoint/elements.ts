// How a channel's value is stored: in one piece when it is small, else as a text that refers to parts, each of which a thread
// stores once. So a step that adds a message to a thousand stores one message, in its pending write and in the channel
// together, and a member that did not change since it was last stored or loaded is not made text of again.
import { type Packed, TAG } from "../core/packed.js";
import { messageCodec } from "../values/messageCodec.js";
import { KnownTexts } from "./knownTexts.js";
import { digestOf, type Entry, type Part, References, runsOf } from "./references.js";

/** A value of this many characters is a part of its own, wherever in an array or an object it stands. */
const PART_CHARS = 160;
/** Arrays and values that are shorter as a whole are stored in one piece. */
const PIECE_CHARS = 1024;
/** Objects within objects whose members may be parts: input, and state that holds lists in an object. */
const OUTLINE_DEPTH = 3;

/** A value in PostgreSQL's columns, and what it stands on. */
export interface EncodedValue {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly parts: readonly Part[];
}

export const JSON_TYPE = "json";
export const BYTES_TYPE = "bytes";
export const EMPTY_TYPE = "empty";
export const EXACT_TYPE = "longhaul";
export const REFERRING_TYPE = "longhaul-parts";

/** What a member was when it was last made text of. The packed form shares the strings of the value. */
interface Remembered {
  readonly packed: Packed;
  readonly length: number;
  readonly digest: string | undefined;
}

const remembered = new WeakMap<object, Remembered>();

/** Remembers a member that was just loaded, under the digest it was loaded by. */
export function remember(value: unknown, digest: string, packed: Packed, length: number): void {
  if (typeof value === "object" && value !== null) remembered.set(value, { packed, length, digest });
}

/**
 * Encodes the value of a channel or of a pending write exactly.
 *
 * @throws UnserializableError with the path of what would not come back equal.
 */
export function encodeValue(value: unknown, path: string): EncodedValue {
  if (value instanceof Uint8Array && Object.getPrototypeOf(value) === Uint8Array.prototype) {
    return { type: BYTES_TYPE, bytes: value, parts: [] };
  }
  const parts = new Map<string, Part>();
  const references = new References();
  const body = outline(value, path, 0, references, (part) => parts.set(part.digest, part));
  if (references.none) {
    // A long list of short members refers to nothing either, and is then stored as what it is.
    const text = JSON.stringify(messageCodec.pack(value, path));
    return { type: isPlain(text) ? JSON_TYPE : EXACT_TYPE, bytes: Buffer.from(text), parts: [] };
  }
  return { type: REFERRING_TYPE, bytes: Buffer.from(references.head(body)), parts: [...parts.values()] };
}

/** LangGraph's own saver reads it as it is: no tag of ours, and nothing that it would take for a class or a prototype. */
function isPlain(text: string): boolean {
  return !text.includes(`"${TAG}"`) && !text.includes('"lc"') && !text.includes('"__proto__"');
}

type Keep = (part: Part) => void;

function outline(value: unknown, path: string, depth: number, references: References, keep: Keep): string {
  if (isList(value)) return outlineList(value, path, references, keep);
  if (depth < OUTLINE_DEPTH && isRecord(value)) {
    const members = Object.entries(value).map(
      ([key, member]) => `${JSON.stringify(key)}:${outline(member, `${path}.${key}`, depth + 1, references, keep)}`,
    );
    return `{${members.join(",")}}`;
  }
  const leaf = entryOf(value, path, PIECE_CHARS, keep);
  return "text" in leaf ? leaf.text : `{"${TAG}":"part","value":${references.part(leaf.digest)}}`;
}

function outlineList(value: readonly unknown[], path: string, references: References, keep: Keep): string {
  const inner: Part[] = [];
  const entries = value.map((member, i) => entryOf(member, `${path}[${i}]`, PART_CHARS, (part) => inner.push(part)));
  const lengths = new Map(inner.map((part) => [part.digest, part]));
  let length = 0;
  for (const entry of entries) length += "text" in entry ? entry.text.length : PART_CHARS;
  if (length < PIECE_CHARS) {
    const texts = entries.map((entry) => ("text" in entry ? entry.text : (lengths.get(entry.digest)?.text() ?? "")));
    if (texts.reduce((sum, text) => sum + text.length, 0) < PIECE_CHARS) return `[${texts.join(",")}]`;
  }
  for (const part of inner) keep(part);
  return `{"${TAG}":"list","value":${runsOf(entries, references, keep)}}`;
}

const knownTexts = new KnownTexts();

/** A text of this many characters is longer than a part, however it is written in JSON. */
function textPart(value: string, path: string, keep: Keep): Entry {
  const text = () => JSON.stringify(messageCodec.pack(value, path));
  let digest = knownTexts.get(value);
  if (digest === undefined) {
    digest = digestOf(text());
    knownTexts.add(value, digest);
  }
  keep({ digest, text });
  return { digest };
}

function entryOf(value: unknown, path: string, partChars: number, keep: Keep): Entry {
  if (typeof value === "string" && value.length >= partChars) return textPart(value, path, keep);
  const packed = messageCodec.pack(value, path);
  const before = typeof value === "object" && value !== null ? remembered.get(value) : undefined;
  if (before !== undefined && before.length >= partChars && isEqual(before.packed, packed)) {
    const digest = before.digest ?? digestOf(JSON.stringify(packed));
    keep({ digest, text: () => JSON.stringify(packed) });
    return { digest };
  }
  const text = JSON.stringify(packed);
  if (text.length < partChars) return { text };
  const digest = digestOf(text);
  if (typeof value === "object" && value !== null) remembered.set(value, { packed, length: text.length, digest });
  keep({ digest, text: () => text });
  return { digest };
}

function isList(value: unknown): value is readonly unknown[] {
  if (!Array.isArray(value) || Object.getPrototypeOf(value) !== Array.prototype) return false;
  const keys = Object.keys(value);
  if (keys.length !== value.length || Object.getOwnPropertySymbols(value).length > 0) return false;
  return keys.every((key, i) => key === String(i));
}

function isRecord(value: unknown): value is object {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return !Object.hasOwn(value, TAG) && Object.getOwnPropertySymbols(value).length === 0;
}

/** Strings that are the same string are compared without being read. */
function isEqual(left: Packed, right: Packed): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((member, i) => isEqual(member, right[i] as Packed))
    );
  }
  if (Array.isArray(right)) return false;
  const keys = Object.keys(left);
  // In the same order: another order is another text.
  const others = Object.keys(right);
  return (
    keys.length === others.length &&
    keys.every((key, i) => key === others[i] && isEqual(left[key] as Packed, right[key] as Packed))
  );
}
