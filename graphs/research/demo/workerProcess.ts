// One life of the worker: started, given its job, listened to, perhaps killed, and seen out.
import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { WorkerMessage } from "./messages.js";

export interface WorkerProcess {
  readonly pid: number;
  /** SIGKILL: no handler runs, nothing is flushed. */
  kill(): void;
  /** A word to a worker that waits for one; lost when it is gone. */
  send(message: object): void;
  /** Resolves when the process is gone. */
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly stderr: string;
  }>;
}

const WORKER = fileURLToPath(new URL("../worker.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The worker is TypeScript, like everything here. */
const TSX = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
/** The end of what a failed worker said is where its error is. */
const STDERR_CHARS = 4_000;

/**
 * Starts a worker on a job. Its own words go to `stderr` of the result; what it reports goes to `onMessage`.
 * @param script the worker's file @default the research graph's
 */
export function startWorker<M extends { readonly type: string } = WorkerMessage>(
  job: object,
  env: NodeJS.ProcessEnv,
  onMessage: (message: M) => void,
  script = WORKER,
): WorkerProcess {
  const child: ChildProcess = fork(script, [], {
    cwd: ROOT,
    env,
    execArgv: ["--import", TSX],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let stderr = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      stderr = (stderr + chunk.toString("utf8")).slice(-STDERR_CHARS);
    });
  }
  child.on("message", (message: M) => {
    if (message.type === "ready") child.send(job, () => {});
    onMessage(message);
  });
  return {
    pid: child.pid ?? 0,
    kill: () => child.kill("SIGKILL"),
    send: (message) => child.send(message, () => {}),
    ended: new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal, stderr }));
    }),
  };
}
