// Runs git the same way everywhere: nobody's configuration, no hooks, one author and one date, so that equal work gives
// equal commits. A repository of somebody else's is only ever read.
import { spawn } from "node:child_process";

/** Commits of a migration are the tool's, and say nothing about when: the ledger knows that. */
const DATE = "2000-01-01T00:00:00Z";
const IDENTITY = {
  GIT_AUTHOR_NAME: "langgraph-longhaul",
  GIT_AUTHOR_EMAIL: "longhaul@localhost",
  GIT_AUTHOR_DATE: DATE,
  GIT_COMMITTER_NAME: "langgraph-longhaul",
  GIT_COMMITTER_EMAIL: "longhaul@localhost",
  GIT_COMMITTER_DATE: DATE,
};
const CONFIG = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.autocrlf=false",
  "core.quotePath=false",
  "commit.gpgSign=false",
  "gc.auto=0",
  "safe.directory=*",
  "protocol.ext.allow=never",
].flatMap((setting) => ["-c", setting]);
/** A package's whole history as a patch; more is no package that a model can migrate. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export class GitError extends Error {
  override readonly name = "GitError";
  constructor(
    readonly code: number | null,
    message: string,
  ) {
    super(message);
  }
}

export interface GitOptions {
  readonly input?: string;
  /** An index of the caller's own, so that calls at once do not meet. */
  readonly index?: string;
  readonly signal?: AbortSignal;
}

/** @returns what git printed. @throws GitError with what it complained about. */
export async function git(directory: string, args: readonly string[], options: GitOptions = {}): Promise<string> {
  const child = spawn("git", [...CONFIG, "--no-optional-locks", ...args], {
    cwd: directory,
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      LC_ALL: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      ...IDENTITY,
      ...(options.index && { GIT_INDEX_FILE: options.index }),
    },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.signal && { signal: options.signal }),
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  let complaint = "";
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_OUTPUT_BYTES) child.kill("SIGKILL");
    else chunks.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    complaint = (complaint + chunk.toString("utf8")).slice(-2_000);
  });
  // Git may end without having read its input.
  child.stdin.on("error", () => {});
  child.stdin.end(options.input ?? "");
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new GitError(code, `git ${args[0]} failed with exit code ${code}: ${complaint.trim()}`);
  return Buffer.concat(chunks).toString("utf8");
}

/** One line of output without its end. */
export async function gitLine(directory: string, args: readonly string[], options: GitOptions = {}): Promise<string> {
  return (await git(directory, args, options)).trim();
}
