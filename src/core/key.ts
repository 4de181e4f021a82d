// Idempotency keys and input hashes. Both are SHA-256 over canonical JSON (RFC 8785), so that key order, `1.0` and
// `-0` do not matter. What canonical JSON cannot carry is refused with its path before anything happens: a value that
// changes on its way into a hash makes two different inputs equal.
import { createHash } from "node:crypto";
import { InvalidOptionError, UnserializableError } from "./errors.js";

const LONE_SURROGATE = /\p{Surrogate}/u;
/** Deeper values overflow the stack of some reader sooner or later, ours or the provider's. */
const MAX_DEPTH = 1000;

/**
 * The canonical JSON text of plain data: sorted keys, no spaces. `undefined` properties are absent, `-0` is `0`,
 * Unicode is left as it is (composed and decomposed forms differ), lone surrogates and NUL are escaped.
 *
 * @throws UnserializableError for NaN, Infinity, BigInt, Date, Map, class instances, functions, symbols and cycles,
 * with the path of the value.
 */
export function canonicalJson(value: unknown, path = "input"): string {
  return write(value, path, new Set()) ?? "null";
}

function write(value: unknown, path: string, open: Set<object>): string | undefined {
  switch (typeof value) {
    case "undefined":
      return undefined;
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new UnserializableError(path, `${value} is not a JSON number`);
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : writeObject(value, path, open);
    default:
      throw new UnserializableError(path, `a ${typeof value} is not JSON; convert it to plain data first`);
  }
}

function writeObject(value: object, path: string, open: Set<object>): string {
  if (open.has(value)) throw new UnserializableError(path, "it contains itself");
  if (open.size >= MAX_DEPTH)
    throw new UnserializableError(shorten(path), `it is nested over ${MAX_DEPTH} levels deep`);
  open.add(value);
  const text = Array.isArray(value) ? writeArray(value, path, open) : writeRecord(value, path, open);
  open.delete(value);
  return text;
}

function writeArray(value: readonly unknown[], path: string, open: Set<object>): string {
  const parts: string[] = [];
  for (let i = 0; i < value.length; i++) {
    const part = write(value[i], `${path}[${i}]`, open);
    if (part === undefined) throw new UnserializableError(`${path}[${i}]`, "undefined in an array is not JSON");
    parts.push(part);
  }
  return `[${parts.join(",")}]`;
}

function writeRecord(value: object, path: string, open: Set<object>): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new UnserializableError(path, `a ${value.constructor?.name ?? "class instance"} is not plain data`);
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw new UnserializableError(path, "it has symbol keys");
  const parts: string[] = [];
  for (const [key, member] of Object.entries(value).sort(byCodeUnits)) {
    const part = write(member, `${path}.${key}`, open);
    if (part !== undefined) parts.push(`${JSON.stringify(key)}:${part}`);
  }
  return `{${parts.join(",")}}`;
}

function shorten(path: string): string {
  return path.length <= 80 ? path : `${path.slice(0, 80)}…`;
}

function byCodeUnits([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** SHA-256 of a text, as lower-case hex. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What makes a step the same step: every part but the input and the attempt. */
export interface KeyParts {
  readonly namespace: string;
  readonly threadId: string;
  readonly generation: number;
  /** LangGraph's task id, or the caller's business key in its place. */
  readonly position: string;
  readonly operation: string;
  /** Tool call id, or the ordinal among calls of the same name in one attempt. */
  readonly callSite: string;
}

/**
 * The idempotency key: the same for every attempt at a step, on any machine. Made at the caller, because a key that
 * the callee makes is new on every attempt and protects nothing.
 */
export function idempotencyKey(parts: KeyParts): string {
  const { namespace, threadId, generation, position, operation, callSite } = parts;
  return sha256(canonicalJson([namespace, threadId, generation, position, operation, callSite]));
}

/**
 * The key under which a read or a model call is recorded: its position and its input together, because a read for
 * another input is simply another read (G17).
 */
export function readKey(parts: KeyParts, inputHash: string): string {
  return sha256(`${idempotencyKey(parts)}:${inputHash}`);
}

/** Refuses ids that PostgreSQL or a person could not carry: empty, NUL, lone surrogates, over 512 characters. */
export function checkId(name: string, id: unknown): string {
  const problem =
    typeof id !== "string" || id === ""
      ? "a non-empty string"
      : id.includes("\0") || LONE_SURROGATE.test(id)
        ? "a string without NUL and lone surrogates"
        : id.length > 512
          ? "at most 512 characters long"
          : undefined;
  if (problem !== undefined) throw new InvalidOptionError(`Expected \`${name}\` to be ${problem}.`);
  return id as string;
}
