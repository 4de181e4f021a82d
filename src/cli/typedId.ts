// An id as it was typed: whole, or as much of its beginning as means one thing.
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import type { Database } from "../postgres/pool.js";
import { approvalsLike, type Candidate, stepsLike } from "../postgres/shortIds.js";

/** Fewer digits would soon mean several. */
const LEAST_DIGITS = 4;

export function typedApproval(database: Database, typed: string): Promise<string> {
  return whole(typed, 32, "request for approval", (prefix) => approvalsLike(database, prefix));
}

export function typedStep(database: Database, typed: string): Promise<string> {
  return whole(typed, 64, "step", (prefix) => stepsLike(database, prefix));
}

/** What is no beginning of an id is left as it is: who takes it says what is wrong. */
async function whole(
  typed: string,
  length: number,
  what: string,
  like: (prefix: string) => Promise<Candidate[]>,
): Promise<string> {
  const prefix = typed.toLowerCase();
  if (!/^[\da-f]+$/.test(prefix) || prefix.length < LEAST_DIGITS || prefix.length >= length) return typed;
  const candidates = await like(prefix);
  const [first, second] = candidates;
  if (first === undefined) throw new NotFoundError(`No ${what} has an id that begins with "${typed}".`);
  if (second === undefined) return first.id;
  const lines = candidates.map(({ id, of }) => `\n  ${id}  ${of}`).join("");
  throw new InvalidOptionError(`"${typed}" is the beginning of several ids. Type more of the one you mean:${lines}`);
}
