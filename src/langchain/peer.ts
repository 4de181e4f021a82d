// The installed LangChain, and whether it is new enough. It is looked at when a middleware is made: a missing function deep in
// a run would say nothing about its cause.
import { createRequire } from "node:module";
import { InvalidOptionError } from "../core/errors.js";

/** The first version with all that is used here; the peer dependency in package.json says the same. */
const LEAST = [1, 5] as const;

/** @throws InvalidOptionError for a LangChain that is too old, or of another major version. */
export function checkPeer(version: string | undefined = installedVersion()): void {
  // A bundler leaves no package.json to read.
  if (version === undefined) return;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major === LEAST[0] && minor >= LEAST[1]) return;
  throw new InvalidOptionError(
    `durableAgent needs langchain ^${LEAST.join(".")}.0, and ${version} is installed. Run: npm install langchain@^${LEAST.join(".")}.0`,
  );
}

function installedVersion(): string | undefined {
  try {
    const found = createRequire(import.meta.url)("langchain/package.json") as { version?: unknown };
    return typeof found.version === "string" ? found.version : undefined;
  } catch {
    return undefined;
  }
}
