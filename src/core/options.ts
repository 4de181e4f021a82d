// Options are checked by name: one that is misspelt, or that this version does not know, would be a promise that nobody keeps.
import { InvalidOptionError } from "./errors.js";

/** @throws InvalidOptionError that names the option that is not known, and those that are. */
export function knownOptions(what: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new InvalidOptionError(`${what} has no option \`${unknown}\`. It has: ${known.join(", ")}.`);
}
