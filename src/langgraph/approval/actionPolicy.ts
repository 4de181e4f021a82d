// What may be asked for at all, whoever would approve it: a function of the arguments that the code gives. It is asked before a
// person is, about what a person changed them to, and once more when the thread goes on with the decision, days later.
import { InvalidOptionError } from "../../core/errors.js";
import { plainText, redact } from "../../core/failure.js";

/**
 * Says why these arguments must not be acted on; undefined when they may be. What it throws is a reason too. It may be asked
 * several times, so it changes nothing.
 */
export type ActionPolicy<Args = unknown> = (args: Args) => string | undefined | Promise<string | undefined>;

/** @throws InvalidOptionError for what is no function. */
export function checkActionPolicy(what: string, policy: unknown): void {
  if (policy === undefined || typeof policy === "function") return;
  throw new InvalidOptionError(`Expected ${what}: \`policy\` to be a function of the arguments.`);
}

const MAX_WHY = 300;

/** The reason against, or undefined. */
export async function reasonAgainst(policy: ActionPolicy<never>, args: unknown): Promise<string | undefined> {
  let why: unknown;
  try {
    why = await policy(args as never);
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  if (why === undefined) return undefined;
  const said = typeof why === "string" && why !== "" ? why : "its policy does not allow it";
  return plainText(redact(said), MAX_WHY);
}
