// Worker after worker on one thread, until one has finished it. The first is killed at the step that was asked for.

import type { World } from "../world/world.js";
import type { Kill } from "./audit.js";
import type { Display } from "./display.js";
import type { Job, WorkerMessage } from "./messages.js";
import type { LedgerReader } from "./receipts.js";
import { startWorker, type WorkerProcess } from "./workerProcess.js";

/** The run did not come to its end; the message is for people. */
export class DemoError extends Error {
  override readonly name = "DemoError";
}

export interface ThreadRun {
  readonly job: Job;
  readonly killAt: number | undefined;
  readonly world: World;
  readonly ledger: LedgerReader;
  readonly display: Display;
}

export interface ThreadOutcome {
  /** Undefined when the budget ended before there was one. */
  readonly report: string | undefined;
  /** Why there is more to do, and how many pages; undefined when all is done. */
  readonly stopped: { readonly message: string; readonly unread: number } | undefined;
  readonly kills: readonly Kill[];
  readonly replayed: number;
  /** The most that a worker had in memory. */
  readonly rssMb: number;
}

/** What one worker left behind. */
interface Life {
  readonly report: string | undefined;
  readonly stopped: ThreadOutcome["stopped"];
  readonly recorded: number;
  readonly replayed: number;
}

/** @throws DemoError when a worker ends without having finished and without having been killed, or waits for a person. */
export async function runThread(run: ThreadRun): Promise<ThreadOutcome> {
  const { world, ledger, job } = run;
  const env = workerEnvironment(world, ledger);
  const kills: Kill[] = [];
  let replayed = 0;
  let rssMb = 0;
  let current: WorkerProcess | undefined;
  const ignoreSignals = onSignal(job.threadId, () => current?.kill());
  try {
    for (let lives = 1; ; lives++) {
      const startedAt = await ledger.now();
      const hear = (message: WorkerMessage): void => {
        // When a new worker speaks, every request that the dead one had sent has been seen: its sockets are drained.
        if (message.type === "memory") rssMb = Math.max(rssMb, message.rssMb);
        if (message.type === "ready" && lives > 1)
          kills.push({ requestsBefore: world.log.requests.length, nextStartedAt: startedAt });
      };
      const start = (onMessage: (message: WorkerMessage) => void): WorkerProcess => {
        current = startWorker(job, env, (message) => {
          hear(message);
          onMessage(message);
        });
        return current;
      };
      const life = await live(start, lives === 1 ? run.killAt : undefined, run.display);
      replayed += life.replayed;
      const { report, stopped } = life;
      if (report !== undefined || stopped !== undefined) return { report, stopped, kills, replayed, rssMb };
    }
  } finally {
    ignoreSignals();
  }
}

/** From the start of a worker to its end; killed at its `killAt`-th recorded step. */
async function live(
  start: (onMessage: (message: WorkerMessage) => void) => WorkerProcess,
  killAt: number | undefined,
  display: Display,
): Promise<Life> {
  let recorded = 0;
  let replayed = 0;
  let killed = false;
  let last: WorkerMessage | undefined;
  const worker = start((message) => {
    if (message.type === "running") display.worker(worker.pid, message.resumed);
    if (message.type === "waiting") display.waiting(message.until, message.reason);
    if (message.type === "finished" || message.type === "paused" || message.type === "out of budget") last = message;
    if (message.type !== "step") return;
    display.step(message);
    if (message.what === "replayed") replayed += 1;
    else recorded += 1;
    if (message.what !== "recorded" || recorded !== killAt) return;
    killed = true;
    worker.kill();
    display.killed(worker.pid, recorded);
  });
  const { code, signal, stderr } = await worker.ended;
  if (last?.type === "paused")
    throw new DemoError(`The thread waits for a person: ${last.question}\nSee: npx longhaul reconcile list`);
  if (last?.type === "out of budget") {
    const { report, message, unread } = last;
    return { report, stopped: { message, unread }, recorded, replayed };
  }
  const report = last?.type === "finished" ? last.report : undefined;
  if (report === undefined && !killed) {
    throw new DemoError(`The worker ended with ${signal ?? `exit code ${code}`}, and nobody had killed it.\n${stderr}`);
  }
  return { report, stopped: undefined, recorded, replayed };
}

function workerEnvironment(world: World, ledger: LedgerReader): NodeJS.ProcessEnv {
  return {
    ...process.env,
    LONGHAUL_DATABASE_URL: ledger.url,
    RESEARCH_SITE_URL: world.siteUrl,
    RESEARCH_PUBLISHER_URL: world.publisherUrl,
    RESEARCH_STAND_IN_URL: world.modelUrl ?? "",
  };
}

/** Ctrl-C ends the worker too, and says how to go on. */
function onSignal(threadId: string, stop: () => void): () => void {
  const end = (): void => {
    stop();
    process.stderr.write(`\nStopped. Nothing is lost; go on with: npm run demo -- --thread ${threadId}\n`);
    process.exit(130);
  };
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  return () => {
    process.off("SIGINT", end);
    process.off("SIGTERM", end);
  };
}
