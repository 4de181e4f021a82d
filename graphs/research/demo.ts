// `npm run demo`: hosts the outside world, runs the worker as a child process, kills it in the middle, starts another,
// and then checks with what the world counted that nothing on record was done twice.
import { setMaxListeners } from "node:events";
import { createDisplay, printJson } from "./demo/display.js";
import type { Job, WorkerMessage } from "./demo/messages.js";
import { type DemoOptions, expectedSteps, parseOptions, UsageError } from "./demo/options.js";
import { type LedgerReader, openLedgerReader } from "./demo/receipts.js";
import { brokenPromises, measure, renderResult } from "./demo/result.js";
import { startWorker, type WorkerProcess } from "./demo/workerProcess.js";
import type { Kill } from "./demo/audit.js";
import { readSettings, type Settings } from "./settings.js";
import { loadCorpus } from "./world/corpus.js";
import { startWorld, type World } from "./world/world.js";

/** The run did not keep its promise or did not end; the message is for people. */
class DemoError extends Error {}

interface RunOutcome {
  readonly report: string;
  readonly kills: Kill[];
  readonly replayed: number;
}

async function main(argv: readonly string[]): Promise<number> {
  const corpus = await loadCorpus();
  const options = parseOptions(argv, corpus.length);
  const settings = readSettings({ ...process.env, RESEARCH_SITE_URL: "", RESEARCH_PUBLISHER_URL: "" });
  const ledger = await openLedgerReader();
  const world = await startWorld({ reportsDirectory: settings.reportsDirectory, standIn: settings.openAi === undefined });
  try {
    const startedAt = await ledger.now();
    const { report, kills, replayed } = await runThread(options, settings, world, ledger);
    const receipts = await ledger.receipts(options.threadId);
    const { log, publisher } = world;
    const result = await measure({ threadId: options.threadId, log, publisher, receipts, kills, startedAt, replayed, report });
    const broken = brokenPromises(result);
    if (options.json) printJson(result);
    else process.stdout.write(`${renderResult(result, options.killAt)}\n`);
    for (const sentence of broken) console.error(sentence);
    return broken.length === 0 ? 0 : 1;
  } finally {
    await world.close();
    await ledger.close();
  }
}

/** Worker after worker, until one has finished the thread. */
async function runThread(options: DemoOptions, settings: Settings, world: World, ledger: LedgerReader): Promise<RunOutcome> {
  const { threadId, pages, urls, question } = options;
  const display = createDisplay(options, expectedSteps(pages, urls.length > 0));
  const job: Job = { threadId, pages, urls, question };
  const env = workerEnvironment(world, ledger);
  const kills: Kill[] = [];
  let replayed = 0;
  let recorded = 0;
  let current: WorkerProcess | undefined;
  const stopOnSignal = interruptible(threadId, () => current?.kill());
  display.start({ threadId, pages, killAt: options.killAt, model: describeModel(settings), ledger: ledger.place });
  try {
    for (;;) {
      const killAt = kills.length === 0 ? options.killAt : undefined;
      let last: WorkerMessage | undefined;
      let wasKilled = false;
      const startedAt = await ledger.now();
      const worker = startWorker(job, env, (message) => {
        // By the time that a new worker speaks, every request of the dead one has been seen: its sockets are drained.
        if (message.type === "ready" && kills.length > 0) kills[kills.length - 1] = { requestsBefore: world.log.requests.length, nextStartedAt: startedAt };
        if (message.type === "running") display.worker(worker.pid, message.resumed);
        if (message.type === "waiting") display.waiting(message.until, message.reason);
        if (message.type === "finished" || message.type === "paused") last = message;
        if (message.type !== "step") return;
        if (message.what === "replayed") replayed += 1;
        else recorded += 1;
        display.step(message);
        if (message.what === "replayed" || recorded !== killAt || wasKilled) return;
        wasKilled = true;
        worker.kill();
      });
      current = worker;
      const { code, signal, stderr } = await worker.ended;
      if (last?.type === "finished") return { report: last.report, kills, replayed };
      if (last?.type === "paused") throw new DemoError(`The thread waits for a person: ${last.question}\nSee: npx longhaul reconcile list`);
      if (!wasKilled) throw new DemoError(`The worker ended with ${signal ?? `exit code ${code}`}, and nobody had killed it.\n${stderr}`);
      display.killed(worker.pid, recorded);
      kills.push({ requestsBefore: world.log.requests.length, nextStartedAt: startedAt });
    }
  } finally {
    display.stop();
    stopOnSignal();
  }
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

function describeModel({ openAi, modelName }: Settings): string {
  if (openAi) return `${modelName} at ${openAi.baseUrl ?? "api.openai.com"}`;
  return `an offline stand-in that quotes sentences from the pages; no money is spent, costs are worked out at the price of ${modelName}`;
}

/** Ctrl-C ends the worker too, and says how to go on. */
function interruptible(threadId: string, stop: () => void): () => void {
  const onSignal = (): void => {
    stop();
    console.error(`\nStopped. Nothing is lost; go on with: npm run demo -- --thread ${threadId}`);
    process.exit(130);
  };
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  return () => {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  };
}

// One abort signal serves all requests of a server; Node's warning at 11 listeners is for leaks.
setMaxListeners(100);
main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    if (error instanceof UsageError) {
      (error.exitCode === 0 ? process.stdout : process.stderr).write(`${error.message}\n`);
      process.exitCode = error.exitCode;
      return;
    }
    console.error(error instanceof DemoError ? error.message : error);
    process.exitCode = 1;
  },
);
