// The demo's command line. Every value is checked here, before anything starts; a bad one is a UsageError (exit code 2).

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { topicCount } from "../topics.js";
import { dollars, positiveInteger, stepOrNone, threadId } from "./arguments.js";

export interface DemoOptions {
  readonly threadId: string;
  readonly pages: number;
  /** SIGKILL at this recorded step; undefined: never. */
  readonly killAt: number | undefined;
  /** Real pages to read instead of the site's. */
  readonly urls: readonly string[];
  readonly question: string | undefined;
  /** What the thread may spend; undefined: what it was given before, else without limit. */
  readonly budgetUsd: number | undefined;
  readonly json: boolean;
}

/** Says what is wrong with the command line, or holds the help text that was asked for. */
export class UsageError extends Error {
  constructor(
    message: string,
    readonly exitCode: 0 | 2,
  ) {
    super(message);
    this.name = "UsageError";
  }
}

interface RawOptions {
  pages?: number;
  killAt?: number | "none";
  thread?: string;
  urls?: readonly string[];
  question?: string;
  budgetUsd?: number;
  json?: boolean;
}

const DEFAULT_PAGES = 40;
/** What one state and one search of the site can hold in a demo. */
const MAX_PAGES = 5_000;

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

/** How many steps a run records: its middle is where the demo kills it. */
export function expectedSteps(pages: number, fromUrls: boolean): number {
  const topics = topicCount(pages);
  const searches = fromUrls ? 0 : 2 + topics * 2;
  const turns = topics * (fromUrls ? 1 : 2);
  return searches + turns + 2 * pages + ["plan", "synthesis", "publish"].length;
}

function complete(raw: RawOptions): DemoOptions {
  const urls = (raw.urls ?? []).slice(0, raw.pages);
  if (urls.length === 0 && (raw.pages ?? 0) > MAX_PAGES) {
    throw new UsageError(`Expected --pages to be at most ${MAX_PAGES}, got ${raw.pages}.`, 2);
  }
  const pages = urls.length || raw.pages || DEFAULT_PAGES;
  const middle = Math.max(1, Math.floor(expectedSteps(pages, urls.length > 0) / 2));
  return {
    threadId: raw.thread ?? `research-${randomUUID().slice(0, 8)}`,
    pages,
    killAt: raw.killAt === "none" ? undefined : (raw.killAt ?? middle),
    urls,
    question: raw.question,
    budgetUsd: raw.budgetUsd,
    json: raw.json === true,
  };
}

function describe(): Command {
  return new Command("npm run demo --")
    .description(
      "Researches a question over many pages, is killed on the way, comes back, and publishes one report. Nothing recorded is done twice.",
    )
    .addOption(
      new Option(
        "--pages <n>",
        `how many pages to read, at most ${MAX_PAGES}; above 238 they are editions of the same pages (default: ${DEFAULT_PAGES})`,
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        "--kill-at <n|none>",
        "SIGKILL the worker at its n-th recorded step (default: in the middle)",
      ).argParser(stepOrNone),
    )
    .addOption(new Option("--thread <id>", "go on with this thread, or name a new one").argParser(threadId))
    .addOption(
      new Option("--urls <file>", "read these web pages, one URL a line, instead of the site").argParser(urlsIn),
    )
    .addOption(new Option("--question <text>", "what to find out").argParser(someText))
    .addOption(
      new Option("--budget-usd <dollars>", "stop at so many dollars, with the report that there is by then").argParser(
        dollars,
      ),
    )
    .option("--json", "print one JSON object a line on stdout, and nothing else")
    .allowExcessArguments(false)
    .helpOption("--help", "show this text");
}

function someText(value: string): string {
  if (value.trim() === "") throw new InvalidArgumentError("Expected a question.");
  return value.trim().replace(/\s+/g, " ");
}

function urlsIn(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new InvalidArgumentError(`Cannot read the file: ${error instanceof Error ? error.message : String(error)}`);
  }
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  for (const line of lines) {
    if (!URL.canParse(line) || !/^https?:$/.test(new URL(line).protocol))
      throw new InvalidArgumentError(`Expected one http(s) URL a line, got "${line}".`);
  }
  if (lines.length === 0) throw new InvalidArgumentError("The file holds no URL.");
  return [...new Set(lines)];
}
