// The demo's command line. Every value is checked here, before anything starts; a bad one is a UsageError (exit code 2).
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { dollars, stepOrNone, threadId } from "../../research/demo/arguments.js";
import { UsageError } from "../../research/demo/options.js";

export interface DemoOptions {
  readonly threadId: string;
  readonly package: string | undefined;
  readonly repository: string | undefined;
  /** SIGKILL at this recorded step; undefined: never. */
  readonly killAt: number | undefined;
  readonly budgetUsd: number | undefined;
  readonly allowUnsandboxed: boolean;
  readonly testTimeoutMs: number | undefined;
  readonly json: boolean;
}

interface RawOptions {
  package?: string;
  repository?: string;
  killAt?: number | "none";
  thread?: string;
  budgetUsd?: number;
  allowUnsandboxed?: boolean;
  testTimeout?: number;
  json?: boolean;
}

const DEFAULT_PACKAGE = "shell-quote@1.8.1";
/** In the first batch of edits, where some are applied and others under way. */
const DEFAULT_KILL_AT = 16;
const MAX_TEST_TIMEOUT_SECONDS = 600;

/** @throws UsageError for a bad option, and for `--help`, whose text it carries. */
export function parseOptions(argv: readonly string[]): DemoOptions {
  const printed: string[] = [];
  const command = describe()
    .exitOverride()
    .configureOutput({ writeOut: (text) => printed.push(text), writeErr: (text) => printed.push(text) });
  try {
    command.parse([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw new UsageError(printed.join("").trim() || error.message, error.exitCode === 0 ? 0 : 2);
  }
  return complete(command.opts<RawOptions>());
}

function complete(raw: RawOptions): DemoOptions {
  if (raw.package !== undefined && raw.repository !== undefined)
    throw new UsageError("Expected --package or --repository, not both.", 2);
  const repository = raw.repository === undefined ? undefined : resolve(raw.repository);
  return {
    threadId: raw.thread ?? `migration-${randomUUID().slice(0, 8)}`,
    package: repository === undefined ? (raw.package ?? DEFAULT_PACKAGE) : undefined,
    repository,
    killAt: raw.killAt === "none" ? undefined : (raw.killAt ?? DEFAULT_KILL_AT),
    budgetUsd: raw.budgetUsd,
    allowUnsandboxed: raw.allowUnsandboxed === true,
    testTimeoutMs: raw.testTimeout === undefined ? undefined : raw.testTimeout * 1_000,
    json: raw.json === true,
  };
}

function describe(): Command {
  return new Command("npm run demo:migrate --")
    .description(
      "Takes a package from CommonJS to ES modules, one commit a file, is killed on the way, comes back, and lets the package's own tests judge.",
    )
    .addOption(
      new Option("--package <spec>", `a package of the npm registry (default: ${DEFAULT_PACKAGE})`).argParser(someText),
    )
    .addOption(new Option("--repository <folder>", "a git repository instead; it is only read").argParser(someText))
    .addOption(
      new Option(
        "--kill-at <n|none>",
        `SIGKILL the worker at its n-th recorded step (default: ${DEFAULT_KILL_AT})`,
      ).argParser(stepOrNone),
    )
    .addOption(new Option("--thread <id>", "go on with this thread, or name a new one").argParser(threadId))
    .addOption(new Option("--budget-usd <dollars>", "pause at so many dollars").argParser(dollars))
    .addOption(new Option("--test-timeout <seconds>", "what one test file may take (default: 30)").argParser(seconds))
    .option("--allow-unsandboxed", "run the package's tests even where the system cannot keep them off the network")
    .option("--json", "print one JSON object a line on stdout, and nothing else")
    .allowExcessArguments(false)
    .helpOption("--help", "show this text");
}

function seconds(value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < 1 || number > MAX_TEST_TIMEOUT_SECONDS)
    throw new InvalidArgumentError(`Expected whole seconds from 1 to ${MAX_TEST_TIMEOUT_SECONDS}.`);
  return number;
}

function someText(value: string): string {
  if (value.trim() === "" || value.includes("\0")) throw new InvalidArgumentError("Expected a name.");
  return value.trim();
}
