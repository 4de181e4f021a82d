// `npm run demo:migrate`: hosts the model stand-in, runs the worker as a child process, kills it in the middle, starts another,
// approves as "demo", and then checks with what the world counted that nothing on record was done twice.
// Exit codes: 0 delivered, 1 an error or a broken promise, 2 a bad option, 3 refused, given up or rejected.
import { setMaxListeners } from "node:events";
import { openLedger } from "langgraph-longhaul";
import { UsageError } from "../research/demo/options.js";
import { type LedgerReader, openLedgerReader } from "../research/demo/receipts.js";
import { DemoError } from "../research/demo/runThread.js";
import { type RequestLog, requestLog } from "../research/world/requestLog.js";
import { startStandIn } from "../research/world/standIn/server.js";
import { createDisplay, printJson } from "./demo/display.js";
import { type DemoOptions, parseOptions } from "./demo/options.js";
import { brokenPromises, measure, renderResult } from "./demo/result.js";
import { runThread } from "./demo/runThread.js";
import { readSettings, type Settings } from "./settings.js";
import { answer } from "./world/standIn/answer.js";

const NOT_DELIVERED = 3;

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  const settings = readSettings({ ...process.env, MIGRATION_STAND_IN_URL: "" });
  const reader = await openLedgerReader();
  const log = requestLog();
  const standIn = settings.openAi === undefined ? await startStandIn({ log, answer }) : undefined;
  try {
    return await migrate(options, settings, { reader, log, standInUrl: standIn?.url ?? "" });
  } finally {
    await standIn?.close();
    await reader.close();
  }
}

interface World {
  readonly reader: LedgerReader;
  readonly log: RequestLog;
  readonly standInUrl: string;
}

async function migrate(options: DemoOptions, settings: Settings, world: World): Promise<number> {
  const { threadId, killAt, repository, json } = options;
  const { reader, log } = world;
  const budgetUsd = options.budgetUsd ?? settings.budgetUsd ?? (await reader.budgetUsd(threadId));
  const wanted = repository ?? options.package ?? "";
  const startedAt = await reader.now();
  const display = createDisplay(json);
  display.start({ threadId, subject: wanted, killAt, model: describeModel(settings), ledger: reader.place });
  const ledger = openLedger({ url: reader.url });
  try {
    const job = { threadId, package: options.package, repository, budgetUsd };
    const env = workerEnvironment(options, world);
    const { finished, kills } = await runThread({ job, killAt, env, log, reader, ledger, display });
    const receipts = await reader.receipts(threadId);
    const result = await measure({ threadId, wanted, finished, log, receipts, kills, startedAt });
    const broken = brokenPromises(result);
    if (json) printJson(result);
    else process.stdout.write(`${renderResult(result, finished, settings.openAi === undefined)}\n`);
    for (const sentence of broken) process.stderr.write(`${sentence}\n`);
    if (broken.length > 0) return 1;
    return result.event === "done" ? 0 : NOT_DELIVERED;
  } finally {
    await ledger.close();
  }
}

function workerEnvironment(options: DemoOptions, { reader, standInUrl }: World): NodeJS.ProcessEnv {
  const { allowUnsandboxed, testTimeoutMs } = options;
  return {
    ...process.env,
    LONGHAUL_DATABASE_URL: reader.url,
    MIGRATION_STAND_IN_URL: standInUrl,
    ...(allowUnsandboxed && { MIGRATION_ALLOW_UNSANDBOXED: "1" }),
    ...(testTimeoutMs !== undefined && { MIGRATION_TEST_TIMEOUT_MS: String(testTimeoutMs) }),
  };
}

function describeModel({ openAi, modelName }: Settings): string {
  if (openAi) return `${modelName} at ${openAi.baseUrl ?? "api.openai.com"}`;
  return `an offline stand-in that runs a codemod; no money is spent, costs are worked out at the price of ${modelName}`;
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
    const known = error instanceof DemoError;
    process.stderr.write(
      `${known ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = 1;
  },
);
