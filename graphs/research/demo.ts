// `npm run demo`: hosts the outside world, runs the worker as a child process, kills it in the middle, starts another,
// and then checks with what the world counted that nothing on record was done twice.
import { setMaxListeners } from "node:events";
import { createDisplay, printJson } from "./demo/display.js";
import { type DemoOptions, expectedSteps, parseOptions, UsageError } from "./demo/options.js";
import { type LedgerReader, openLedgerReader } from "./demo/receipts.js";
import { brokenPromises, type DemoResult, measure, renderResult } from "./demo/result.js";
import { DemoError, runThread } from "./demo/runThread.js";
import { readSettings, type Settings } from "./settings.js";
import { startWorld, type World } from "./world/world.js";

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  // This process is the world; what an outer one may have set does not count.
  const settings = readSettings({
    ...process.env,
    RESEARCH_SITE_URL: "",
    RESEARCH_PUBLISHER_URL: "",
    RESEARCH_STAND_IN_URL: "",
  });
  const ledger = await openLedgerReader();
  const world = await startWorld({
    reportsDirectory: settings.reportsDirectory,
    pages: options.pages,
    standIn: settings.openAi === undefined,
  });
  try {
    const result = await research(options, settings, world, ledger);
    const broken = brokenPromises(result);
    if (options.json) printJson(result);
    else process.stdout.write(`${renderResult(result, options.killAt, settings.openAi === undefined)}\n`);
    for (const sentence of broken) process.stderr.write(`${sentence}\n`);
    return broken.length === 0 ? 0 : 1;
  } finally {
    await world.close();
    await ledger.close();
  }
}

async function research(
  options: DemoOptions,
  settings: Settings,
  world: World,
  ledger: LedgerReader,
): Promise<DemoResult> {
  const { threadId, pages, urls, question, killAt } = options;
  const budgetUsd = options.budgetUsd ?? (await ledger.budgetUsd(threadId));
  const startedAt = await ledger.now();
  const display = createDisplay(options, expectedSteps(pages, urls.length > 0));
  display.start({ threadId, pages, killAt, model: describeModel(settings), ledger: ledger.place });
  try {
    const outcome = await runThread({
      job: { threadId, pages, urls, question, budgetUsd },
      killAt,
      world,
      ledger,
      display,
    });
    const receipts = await ledger.receipts(threadId);
    const dbBytes = await ledger.bytesOf(threadId);
    return await measure({
      threadId,
      log: world.log,
      publisher: world.publisher,
      receipts,
      startedAt,
      dbBytes,
      ...outcome,
    });
  } finally {
    display.stop();
  }
}

function describeModel({ openAi, modelName }: Settings): string {
  if (openAi) return `${modelName} at ${openAi.baseUrl ?? "api.openai.com"}`;
  return `an offline stand-in that quotes sentences from the pages; no money is spent, costs are worked out at the price of ${modelName}`;
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
    process.stderr.write(
      `${error instanceof DemoError ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = 1;
  },
);
