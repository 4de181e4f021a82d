// Whether a text parses, asked of the engine that will run it.
import { tmpdir } from "node:os";
import { runSandboxed } from "./sandbox.js";

/** A parse takes milliseconds; a machine under load starts processes slowly. */
const TIMEOUT_MS = 20_000;

/** @returns what the engine says about the text, or undefined where it parses. */
export async function syntaxError(text: string, type: "module" | "commonjs"): Promise<string | undefined> {
  const { code, stderr, endedBy } = await runSandboxed({
    argv: ["node", "--check", `--input-type=${type}`, "-"],
    folder: tmpdir(),
    timeoutMs: TIMEOUT_MS,
    input: text,
  });
  if (code === 0) return undefined;
  if (endedBy !== undefined) throw new Error(`Checking a file's syntax was ended by its ${endedBy} limit.`);
  const message = /^\w*Error: .*$/m.exec(stderr)?.[0] ?? "it does not parse";
  const line = /^\[stdin\]:(\d+)/m.exec(stderr)?.[1];
  return line === undefined ? message : `line ${line}: ${message}`;
}
