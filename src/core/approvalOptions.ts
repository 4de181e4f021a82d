// The checks of a request for approval: what cannot be is refused at construction, or before anything is asked.
import type { ApprovalPolicy, ApprovalRequest } from "./approval.js";
import { InvalidOptionError } from "./errors.js";
import { canonicalJson, checkId } from "./key.js";
import { knownOptions } from "./options.js";

export const POLICY_OPTIONS = [
  "approvers",
  "timeoutMs",
  "onTimeout",
  "warnAfterMs",
  "escalateTo",
  "escalateAfterMs",
  "mayEdit",
] as const;

/** A hundred years: what is longer is a mistake in units, or meant as no deadline. */
const MAX_MS = 100 * 365 * 24 * 3_600_000;
/** What a person reads before they click; a card, not a document. */
const MAX_DESCRIPTION = 20_000;
/** The checkpoint keeps them once for each user interface that can show them. */
const MAX_ARGS = 1_000_000;

/**
 * @returns a copy: what the caller changes later changes nothing here
 * @throws InvalidOptionError for a policy that cannot be, or that nobody could answer.
 */
export function checkPolicy(what: string, policy: ApprovalPolicy): ApprovalPolicy {
  const { approvers, timeoutMs, onTimeout, warnAfterMs, escalateTo, escalateAfterMs, mayEdit } = policy;
  checkNames(`${what}: \`approvers\``, approvers);
  checkNames(`${what}: \`escalateTo\``, escalateTo);
  checkMs(`${what}: \`timeoutMs\``, timeoutMs, true);
  checkMs(`${what}: \`warnAfterMs\``, warnAfterMs, false);
  checkMs(`${what}: \`escalateAfterMs\``, escalateAfterMs, false);
  if (onTimeout !== undefined && onTimeout !== "reject" && onTimeout !== "approve") {
    throw new InvalidOptionError(`Expected ${what}: \`onTimeout\` to be "reject" or "approve".`);
  }
  if (mayEdit !== undefined && typeof mayEdit !== "boolean")
    throw new InvalidOptionError(`Expected ${what}: \`mayEdit\` to be a boolean.`);
  if ((escalateTo === undefined) !== (escalateAfterMs === undefined)) {
    throw new InvalidOptionError(`Give ${what} \`escalateTo\` and \`escalateAfterMs\` together.`);
  }
  const firstMs = Math.max(warnAfterMs ?? 0, escalateAfterMs ?? 0);
  if (timeoutMs !== undefined && firstMs >= timeoutMs) {
    throw new InvalidOptionError(
      `Expected ${what}: \`warnAfterMs\` and \`escalateAfterMs\` to be before its deadline of ${timeoutMs} ms.`,
    );
  }
  return structuredClone(policy);
}

function checkNames(what: string, names: readonly string[] | undefined): void {
  if (names === undefined) return;
  if (!Array.isArray(names) || names.length === 0) {
    throw new InvalidOptionError(
      `Expected ${what} to be a list of at least one name: an empty one could never be answered.`,
    );
  }
  for (const name of names) {
    checkId(what, name);
    if (isReserved(name)) throw new InvalidOptionError(`Expected ${what} to name people, got "${name}".`);
    if (isLookAlike(name)) throw new InvalidOptionError(lookAlike(what, name));
  }
}

/** Names that stand for the pack itself, and for the agent that asks: they never decide by a person's way. */
export function isReserved(name: string): boolean {
  return /^(system|agent)(:|$)/i.test(name.normalize("NFKC").replaceAll(/[\s\p{C}]/gu, ""));
}

/**
 * A name that is written in letters of two alphabets which look the same, or in another form of its letters: nobody could tell
 * it from the one that it looks like. (A name wholly in another alphabet is a name.)
 */
export function isLookAlike(name: string): boolean {
  const mixed =
    /\p{Script=Latin}/u.test(name) &&
    /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u.test(name);
  return mixed || name !== name.normalize("NFKC");
}

export function lookAlike(what: string, name: string): string {
  return `Expected ${what} to be written in one alphabet, and in its plain letters (Unicode NFKC), got ${JSON.stringify(name)}: it could pass for another name.`;
}

function checkMs(what: string, ms: number | undefined, mayBeInfinite: boolean): void {
  if (ms === undefined || (mayBeInfinite && ms === Number.POSITIVE_INFINITY)) return;
  if (typeof ms === "number" && Number.isFinite(ms) && ms >= 1 && ms <= MAX_MS) return;
  throw new InvalidOptionError(
    `Expected ${what} to be milliseconds between 1 and ${MAX_MS}${mayBeInfinite ? ", or Infinity for no deadline" : ""}, got ${String(ms)}.`,
  );
}

/** The arguments as canonical JSON. @throws InvalidOptionError, UnserializableError for a request nobody could read. */
export function checkRequest(what: string, request: ApprovalRequest): string {
  if (typeof request !== "object" || request === null) {
    throw new InvalidOptionError(`Expected ${what} to ask with { action, args, description? }.`);
  }
  knownOptions(`The request of ${what}`, request, ["action", "args", "description"]);
  checkId(`action of ${what}`, request.action);
  const { description } = request;
  if (description !== undefined && (typeof description !== "string" || description.length > MAX_DESCRIPTION)) {
    throw new InvalidOptionError(
      `Expected \`description\` of ${what} to be a text of at most ${MAX_DESCRIPTION} characters.`,
    );
  }
  const args = canonicalJson(request.args ?? null, `args of ${request.action}`);
  if (args.length <= MAX_ARGS) return args;
  throw new InvalidOptionError(
    `The arguments of "${request.action}" have ${args.length} characters, and nobody reads over ${MAX_ARGS}. Ask for a reference to them.`,
  );
}
