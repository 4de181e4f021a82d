// Worker after worker on one thread, until one has finished it. The first is killed at the step that was asked for; what a
// person would decide is decided here, as "demo".
import { fileURLToPath } from "node:url";
import { approvalsOf, decide, type Ledger } from "langgraph-longhaul";
import type { Kill } from "../../research/demo/audit.js";
import type { LedgerReader } from "../../research/demo/receipts.js";
import { DemoError } from "../../research/demo/runThread.js";
import { startWorker, type WorkerProcess } from "../../research/demo/workerProcess.js";
import type { RequestLog } from "../../research/world/requestLog.js";
import type { Display } from "./display.js";
import type { Finished, Job, WorkerMessage } from "./messages.js";

const WORKER = fileURLToPath(new URL("../worker.ts", import.meta.url));
const DECIDER = "demo";

export interface ThreadRun {
  readonly job: Job;
  readonly killAt: number | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly log: RequestLog;
  readonly reader: LedgerReader;
  readonly ledger: Ledger;
  readonly display: Display;
}

export interface ThreadOutcome {
  readonly finished: Finished;
  readonly kills: readonly Kill[];
}

/** @throws DemoError when a worker ends without having finished and without having been killed, or waits for a person. */
export async function runThread(run: ThreadRun): Promise<ThreadOutcome> {
  const kills: Kill[] = [];
  for (let lives = 1; ; lives++) {
    const startedAt = await run.reader.now();
    const finished = await live(run, lives === 1 ? run.killAt : undefined, () => {
      // When a new worker speaks, every request that the dead one had sent has been seen: its sockets are drained.
      if (lives > 1) kills.push({ requestsBefore: run.log.requests.length, nextStartedAt: startedAt });
    });
    if (finished !== undefined) return { finished, kills };
  }
}

/** From the start of a worker to its end; undefined when it was killed. */
async function live(run: ThreadRun, killAt: number | undefined, onReady: () => void): Promise<Finished | undefined> {
  const { display, job } = run;
  let recorded = 0;
  let killed = false;
  let last: Finished | Extract<WorkerMessage, { type: "paused" }> | undefined;
  let deciding: Promise<void> | undefined;
  const hear = (message: WorkerMessage): void => {
    if (message.type === "ready") onReady();
    if (message.type === "running") display.worker(worker.pid, message.resumed);
    if (message.type === "waiting") display.waiting(message.until, message.reason);
    if (message.type === "finished" || message.type === "paused") last = message;
    if (message.type === "asking") deciding = approve(run, worker);
    if (message.type !== "step") return;
    display.step(message);
    if (message.what === "recorded") recorded += 1;
    if (message.what !== "recorded" || recorded !== killAt) return;
    killed = true;
    worker.kill();
    display.killed(worker.pid, recorded);
  };
  const worker = startWorker<WorkerMessage>(job, run.env, hear, WORKER);
  const ignoreSignals = onSignal(job.threadId, worker);
  try {
    const { code, signal, stderr } = await worker.ended;
    await deciding;
    if (last?.type === "paused")
      throw new DemoError(`The thread waits: ${last.question}\nSee: npx longhaul show ${job.threadId}`);
    if (last === undefined && !killed)
      throw new DemoError(
        `The worker ended with ${signal ?? `exit code ${code}`}, and nobody had killed it. Its thread is ${job.threadId}.\n${stderr}`,
      );
    return last;
  } finally {
    ignoreSignals();
  }
}

async function approve({ ledger, job, display }: ThreadRun, worker: WorkerProcess): Promise<void> {
  for (const { id, args } of await approvalsOf(ledger, { threadId: job.threadId, status: "pending" })) {
    await decide(ledger, { approvalId: id, by: DECIDER, decision: { status: "approved" } });
    display.approved(DECIDER, id, args);
  }
  worker.send({ type: "decided" });
}

/** Ctrl-C ends the worker too, and says how to go on. */
function onSignal(threadId: string, worker: WorkerProcess): () => void {
  const end = (): void => {
    worker.kill();
    process.stderr.write(`\nStopped. Nothing is lost; go on with: npm run demo:migrate -- --thread ${threadId}\n`);
    process.exit(130);
  };
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  return () => {
    process.off("SIGINT", end);
    process.off("SIGTERM", end);
  };
}
