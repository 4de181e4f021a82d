// Whether a text parses, asked of the engine that will run it. Nothing of it is run.
import { tmpdir } from "node:os";
import { compileFunction } from "node:vm";
import { runSandboxed } from "./sandbox.js";

/** A parse takes milliseconds; a machine under load starts processes slowly. */
const TIMEOUT_MS = 20_000;

/** @returns what the engine says about an ES module, or undefined where it parses. */
export async function moduleSyntaxError(text: string): Promise<string | undefined> {
  const { code, stderr, endedBy } = await runSandboxed({
    argv: ["node", "--check", "--input-type=module", "-"],
    folder: tmpdir(),
    timeoutMs: TIMEOUT_MS,
    input: text,
  });
  if (code === 0) return undefined;
  if (endedBy !== undefined) throw new Error(`Checking a file's syntax was ended by its ${endedBy} limit.`);
  const message = /^\w*Error: .*$/m.exec(stderr)?.[0] ?? "it does not parse";
  return atLine(/^\[stdin\]:(\d+)/m.exec(stderr)?.[1], message);
}

/** @returns what the engine says about a CommonJS file, or undefined where it parses. */
export function commonJsSyntaxError(text: string): string | undefined {
  try {
    compileFunction(text.replace(/^#!.*/, ""), ["exports", "require", "module", "__filename", "__dirname"], {
      filename: "file",
    });
    return undefined;
  } catch (error) {
    const { message, stack = "" } = error as Error;
    return atLine(/^file:(\d+)/.exec(stack)?.[1], `SyntaxError: ${message}`);
  }
}

function atLine(line: string | undefined, message: string): string {
  return line === undefined ? message : `line ${line}: ${message}`;
}
