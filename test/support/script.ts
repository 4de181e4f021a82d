// TypeScript in a process of its own: it prints one JSON object a line, and may be killed.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { inject } from "vitest";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it printed. */
  readonly lines: readonly Record<string, unknown>[];
  readonly stderr: string;
}

export interface RunningScript {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Runs a file of this repository with `argv`. No database of the environment reaches it. */
export function startScript(path: string, argv: readonly string[] = [], env: NodeJS.ProcessEnv = {}): RunningScript {
  return startNode([join(inject("scripts"), path.replace(/ts$/, "js")), ...argv], env);
}

/** Runs Node with these arguments, as startScript does. */
export function startNode(argv: readonly string[], env: NodeJS.ProcessEnv = {}): RunningScript {
  const child = spawn(process.execPath, argv, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...cleanEnvironment(), ...env },
  });
  running.add(child);
  const lines: Record<string, unknown>[] = [];
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => {
    stderr += data.toString();
  });
  createInterface(child.stdout).on("line", (line) => lines.push(parse(line)));
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve({ code, signal, lines, stderr });
    });
  });
  return { child, ended };
}

export function runScript(path: string, argv: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return startScript(path, argv, env).ended;
}

/** `longhaul … --json` on one database. */
export function longhaul(url: string, ...argv: string[]): Promise<Ended> {
  return runScript("src/cli/main.ts", [...argv, "--json", "--url", url]);
}

function parse(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return { text: line };
  }
}

export function cleanEnvironment(): NodeJS.ProcessEnv {
  const names = ["LONGHAUL_DATABASE_URL", "DATABASE_URI", "POSTGRES_URI", "POSTGRES_URI_CUSTOM", "NODE_ENV"];
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !names.includes(name)));
}

/** Does `work` for every item, at most `limit` at once, and returns the results in order. */
export async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const queue = [...items.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return results;
}
