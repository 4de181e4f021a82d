// Runs one command with a time limit and an output limit, and ends everything that it started.
import { spawn } from "node:child_process";

export interface CommandOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  /** Of stdout and stderr each; a command that says more is ended. @default 1 MiB */
  readonly maxOutputBytes?: number;
  readonly input?: string;
  readonly signal?: AbortSignal;
}

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Which limit ended it; undefined: it ended by itself. */
  readonly endedBy: "timeout" | "output" | "cancel" | undefined;
}

/** More than any small package's suite prints; less than what fills a memory. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** @throws only where the command cannot be started. */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const { cwd, env, timeoutMs, maxOutputBytes = MAX_OUTPUT_BYTES, input = "", signal } = options;
  // A group of its own, so that what it starts can be ended with it.
  const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  let endedBy: CommandResult["endedBy"];
  const end = (why: NonNullable<CommandResult["endedBy"]>): void => {
    endedBy ??= why;
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  };
  const collect = (stream: NodeJS.ReadableStream): (() => string) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    stream.on("data", (chunk: Buffer) => {
      if (bytes > maxOutputBytes) return;
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > maxOutputBytes) end("output");
    });
    return () => Buffer.concat(chunks).subarray(0, maxOutputBytes).toString("utf8");
  };
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => end("timeout"), timeoutMs);
    const cancel = (): void => end("cancel");
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    };
    child.once("error", (error) => {
      settle();
      reject(error);
    });
    // A process that left the group may hold the pipes open: the exit counts, and what was said by then.
    child.once("exit", (code) => {
      const finish = (): void => {
        settle();
        resolve({ code, stdout: stdout(), stderr: stderr(), endedBy });
      };
      const grace = setTimeout(finish, 500);
      child.once("close", () => {
        clearTimeout(grace);
        finish();
      });
    });
  });
}
