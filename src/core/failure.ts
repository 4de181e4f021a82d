// What an error means: may the step be tried again, and can its request have reached the world? "Failed" is three
// different things, and a throw is never by itself a "no". Unrecognised errors of a write are "unknown, sent".
import { type RecordedFailure, UnserializableError } from "./errors.js";
import { takeSpent } from "./spent.js";

export type FailureClass =
  /** The request never left: try again, whatever the effect. */
  | "transient-not-sent"
  /** The request may have arrived: a read is tried again, a write is looked up first. */
  | "unknown-sent"
  /** The world said no, or we did before sending: trying again brings the same answer. */
  | "permanent";
export const FAILURE_CLASSES: readonly FailureClass[] = ["transient-not-sent", "unknown-sent", "permanent"];

/** Node's codes for "no connection was made". */
const NOT_SENT_CODES = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);
/** Refused before a request was made of it, and refused again next time: a wrong address, a certificate nobody trusts. */
const REFUSED_CODES = new Set([
  "ERR_INVALID_URL",
  "ERR_INVALID_PROTOCOL",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);
/** OpenAI answers 429 for an account without money too: no wait helps. */
const EXHAUSTED_CODES = new Set(["insufficient_quota", "billing_hard_limit_reached"]);
/** Answers that say "you, your request": RFC 9110 15.5; 408, 425 and 429 say something else. */
const PERMANENT_STATUS = new Set([400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 422]);

/** Classifies what a step's `run` threw; looks through `cause` and AggregateError. */
export function classify(error: unknown): FailureClass {
  try {
    return classifyChain(error);
  } catch {
    // An error that cannot be read proves nothing.
    return "unknown-sent";
  }
}

function classifyChain(error: unknown): FailureClass {
  let found: FailureClass | undefined;
  for (const inner of chain(error)) {
    const verdict = classifyOne(inner);
    if (verdict === "unknown-sent") return verdict;
    found ??= verdict;
  }
  return found ?? "unknown-sent";
}

function classifyOne(error: object): FailureClass | undefined {
  if (error instanceof UnserializableError) return "permanent";
  const code = stringOf(error, "code");
  if (code !== undefined) {
    // Node names the system call that failed: without a connection nothing was sent on it.
    if (NOT_SENT_CODES.has(code) || stringOf(error, "syscall") === "connect") return "transient-not-sent";
    if (REFUSED_CODES.has(code) || EXHAUSTED_CODES.has(code)) return "permanent";
  }
  const status = statusOf(error);
  if (status === undefined) return undefined;
  // RFC 6585: 429 is answered before the request is worked on. 503 says so only when it names a time to come back.
  if (status === 429 || (status === 503 && retryAfterMs(error) !== undefined)) return "transient-not-sent";
  if (PERMANENT_STATUS.has(status)) return "permanent";
  return "unknown-sent";
}

/** The error and what is nested in it, outermost first, each once. */
function* chain(error: unknown, seen = new Set<unknown>()): Generator<object> {
  if (typeof error !== "object" || error === null || seen.has(error) || seen.size > 20) return;
  seen.add(error);
  yield error;
  if ("cause" in error) yield* chain(error.cause, seen);
  if ("errors" in error && Array.isArray(error.errors)) for (const inner of error.errors) yield* chain(inner, seen);
}

/** The HTTP status that an error carries as `status`, `statusCode` or `response.status`. */
export function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const response = "response" in error ? error.response : undefined;
  for (const holder of [error, response]) {
    if (typeof holder !== "object" || holder === null) continue;
    for (const name of ["status", "statusCode"] as const) {
      const value = (holder as Record<string, unknown>)[name];
      if (typeof value === "number" && value >= 100 && value <= 599) return value;
    }
  }
  return undefined;
}

/** An answer that asks for years is a mistake: after a day the question is worth a request. */
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

/** How long the answer asked us to wait, from a well-formed `Retry-After`, a day at most; undefined otherwise. */
export function retryAfterMs(error: unknown, nowMs = Date.now()): number | undefined {
  for (const inner of chain(error)) {
    const text = headerOf(inner, "retry-after");
    if (text === undefined) continue;
    if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, RETRY_AFTER_MAX_MS);
    const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
    if (Number.isFinite(at) && at > nowMs) return Math.min(at - nowMs, RETRY_AFTER_MAX_MS);
  }
  return undefined;
}

function headerOf(error: object, name: string): string | undefined {
  const record = error as Record<string, unknown>;
  const response = record["response"] as Record<string, unknown> | undefined;
  const headers: unknown = record["headers"] ?? response?.["headers"];
  if (typeof headers !== "object" || headers === null) return undefined;
  const value: unknown =
    "get" in headers && typeof headers.get === "function"
      ? headers.get(name)
      : (headers as Record<string, unknown>)[name];
  return typeof value === "string" ? value.trim() : undefined;
}

function stringOf(error: object, name: string): string | undefined {
  const value = (error as Record<string, unknown>)[name];
  return typeof value === "string" ? value : undefined;
}

/** What is recorded of an error: enough to tell it apart and to throw it again, without its stack and payloads. */
export function recordFailure(error: unknown): RecordedFailure {
  try {
    const usage = takeSpent(error);
    return { ...describe(error), ...(usage === undefined ? {} : { usage }) };
  } catch {
    // A getter that throws must not keep the failure from being recorded.
    return { name: "Error", message: "The error could not be read." };
  }
}

/** Text that PostgreSQL and a terminal can carry: no NUL, no half of a character, no more than `max` characters. */
export function plainText(text: string, max: number): string {
  return text.slice(0, max).toWellFormed().replaceAll("\0", "\ufffd");
}

function describe(error: unknown): RecordedFailure {
  if (typeof error !== "object" || error === null) {
    return { name: "Error", message: readable(String(error)) };
  }
  // `fetch failed` alone says nothing: what failed stands in its cause.
  const inner = [...chain(error)].find((one) => stringOf(one, "code") !== undefined);
  const code = inner && stringOf(inner, "code");
  const cause = inner === undefined || inner === error ? "" : ` (${stringOf(inner, "message") ?? code})`;
  return {
    name: plainText(stringOf(error, "name") ?? "Error", NAME_MAX),
    message: readable(`${stringOf(error, "message") ?? ""}${cause}`),
    code: code === undefined ? undefined : plainText(code, NAME_MAX),
    status: statusOf(error),
  };
}

/** Cut first: a provider's text can be long enough to keep the process busy for seconds. */
function readable(message: string): string {
  return plainText(redact(message.slice(0, 4 * MESSAGE_MAX)), MESSAGE_MAX);
}

/** Long messages carry whole responses: the history is no place for them. */
const MESSAGE_MAX = 2000;
const NAME_MAX = 200;
const SECRETS = [
  /\b(sk|pk|rk|xox[abp]|ghp|gho|ghs)[-_][A-Za-z0-9_-]{8,}/g,
  /\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\b(AKIA|ASIA)[A-Z0-9]{12,}/g,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g,
  /(?<=:\/\/[^\s:/@]*:)[^\s@/]+(?=@)/g,
];

/** Takes API keys, bearer tokens and passwords in addresses out of a text that people will read. */
export function redact(text: string): string {
  return SECRETS.reduce((redacted, pattern) => redacted.replace(pattern, "[redacted]"), text);
}
