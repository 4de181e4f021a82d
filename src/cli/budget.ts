// `longhaul budget`: what a thread may spend, has spent, and may spend more.
import { type Command, Command as Group } from "commander";
import { type BudgetState, LIMIT_NAMES } from "../core/budget.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { formatUsd } from "../core/price.js";
import { remainingRatio } from "../core/remaining.js";
import { raiseBudget } from "../operate/raiseBudget.js";
import { budgetHistory, budgetsOfThread } from "../postgres/budgetRows.js";
import { type ConnectOptions, databaseCommand, systemUser, withExisting, withLedger } from "./connect.js";
import { goesOn, printJson, printLine, printTable } from "./output.js";
import { parseInstant } from "./times.js";

export function budgetCommand(): Command {
  return new Group("budget")
    .description("what a thread may spend, and has spent")
    .addCommand(showCommand())
    .addCommand(raiseCommand())
    .addCommand(historyCommand());
}

function historyCommand(): Command {
  return databaseCommand("history", "what a thread's budgets did to it, and who raised them")
    .argument("<thread>", "thread id")
    .action(async (threadId: string, options: ConnectOptions) => {
      const rows = await withExisting(options, (database) => budgetHistory(database, checkId("thread", threadId)));
      if (options.json) for (const row of rows) printJson(row);
      else {
        const cells = rows.map(({ at, scope, kind, by, detail }) => [
          at.toISOString(),
          scope,
          kind,
          by ?? "",
          Object.entries(detail)
            .map(([name, value]) => `${name} ${String(value)}`)
            .join(", "),
        ]);
        printTable(["at", "scope", "what", "by", "detail"], cells);
      }
    });
}

function showCommand(): Command {
  return databaseCommand("show", "show a thread's limits, what is spent, and what calls under way hold")
    .argument("<thread>", "thread id")
    .action(async (threadId: string, options: ConnectOptions) => {
      const states = await withExisting(options, (database) => budgetsOfThread(database, checkId("thread", threadId)));
      if (states.length === 0) throw new NotFoundError(`Thread "${threadId}" has no budget: it never ran with one.`);
      if (options.json) for (const state of states) printJson(toJson(state));
      else printTable(["scope", "limit", "allowed", "spent", "held", "left"], states.flatMap(toRows));
    });
}

function toJson(state: BudgetState): object {
  return { ...state, remainingRatio: remainingRatio(state) };
}

function toRows(state: BudgetState): string[][] {
  const { scope, allowed, spent, reserved } = state;
  const usd = (amount: bigint) => `$${formatUsd(amount)}`;
  const rows: string[][] = [];
  const add = (name: string, limit: string | undefined, used: string, held: string, left: string) =>
    rows.push([scope, name, limit ?? "no limit", used, held, limit === undefined ? "" : left]);
  const { nanoUsd, deadline } = allowed;
  const leftUsd = (nanoUsd ?? 0n) - spent.nanoUsd - reserved.nanoUsd;
  add("usd", nanoUsd === undefined ? undefined : usd(nanoUsd), usd(spent.nanoUsd), usd(reserved.nanoUsd), usd(leftUsd));
  for (const name of ["iterations", "activeMs"] as const) {
    const limit = allowed[name];
    if (limit !== undefined) add(name, `${limit}`, `${spent[name]}`, "", `${Math.max(0, limit - spent[name])}`);
  }
  for (const name of ["tokens", "modelCalls", "toolCalls"] as const) {
    const left = (allowed[name] ?? 0) - spent[name] - reserved[name];
    add(name, allowed[name]?.toString(), `${spent[name]}`, `${reserved[name]}`, `${left}`);
  }
  if (deadline !== undefined) add("deadline", deadline.toISOString(), "", "", "");
  return rows;
}

interface RaiseOptions extends ConnectOptions {
  readonly usd?: string;
  readonly tokens?: string;
  readonly modelCalls?: string;
  readonly toolCalls?: string;
  readonly iterations?: string;
  readonly activeMs?: string;
  readonly deadline?: string;
  readonly scope?: string;
  readonly by: string;
  readonly reason?: string;
}

function raiseCommand(): Command {
  return databaseCommand("raise", "add to what a thread may spend; it can then go on")
    .argument("<thread>", "thread id")
    .option("--usd <dollars>", "so many dollars more")
    .option("--tokens <n>", "so many tokens more")
    .option("--model-calls <n>", "so many model calls more")
    .option("--tool-calls <n>", "so many tool calls more")
    .option("--iterations <n>", "so many supersteps more")
    .option("--active-ms <n>", "so many milliseconds of work more")
    .option(
      "--deadline <time>",
      "a later deadline: 2026-03-01T03:00, with Z or +01:00 for another zone than this machine's",
    )
    .option("--scope <name>", "a scope of the thread's, in place of its own")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; recorded")
    .action(async (threadId: string, options: RaiseOptions) => {
      const { by, scope, reason } = options;
      const more = Object.fromEntries(
        LIMIT_NAMES.filter((name) => options[name] !== undefined).map((name) => [
          name,
          toNumber(name, options[name] ?? ""),
        ]),
      );
      const request = {
        threadId,
        by,
        ...more,
        ...(options.deadline === undefined ? {} : { deadline: parseInstant(options.deadline) }),
        ...(scope === undefined ? {} : { scope }),
        ...(reason === undefined ? {} : { reason }),
      };
      const state = await withLedger(options, (ledger) => raiseBudget(ledger, request));
      if (options.json) printJson(toJson(state));
      else printLine(`Raised. ${goesOn(threadId)}`);
    });
}

function toNumber(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new InvalidOptionError(`Expected ${name} to be a number, got "${text}".`);
}
