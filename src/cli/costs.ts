// `longhaul costs`: what was paid, by thread, node, tool, model or hour.
import { type Command, Option } from "commander";
import { NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { formatUsd } from "../core/price.js";
import { listThreads } from "../postgres/runs.js";
import { COST_GROUPS, type CostGroup, type CostSum, paidSpan, sumCalls } from "../postgres/trace.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { positiveInteger, printJson, printLine, printTable } from "./output.js";
import { parseTimes, showClock, showDay, spansOf, type TimeOptions, timeZone, withTimeOptions } from "./times.js";

interface CostsOptions extends ConnectOptions, TimeOptions {
  readonly by: CostGroup;
  readonly thread?: string;
  readonly limit: number;
}

export function costsCommand(): Command {
  const command = databaseCommand("costs", "sum up what model calls cost")
    .addOption(new Option("--by <what>", "what to sum up by").choices(COST_GROUPS).default("thread"))
    .option("--thread <id>", "of one thread")
    .option("--limit <n>", "how many lines", positiveInteger, 50)
    .addHelpText(
      "after",
      "\nA call that was tried again is one call, with what all its attempts cost. A replay costs nothing.",
    );
  return withTimeOptions(command, "was paid").action(async (options: CostsOptions) => {
    const filter = parseTimes(options);
    const threadId = options.thread === undefined ? undefined : checkId("thread", options.thread);
    const { total, groups } = await withCurrent(options, async (database) => {
      if (threadId !== undefined && (await listThreads(database, { threadId, limit: 1 })).length === 0) {
        throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
      }
      const paid = await paidSpan(database, threadId);
      const spans = filter === undefined ? undefined : paid === undefined ? [] : spansOf(filter, paid);
      return sumCalls(database, { ...options, threadId, spans, timeZone: timeZone() });
    });
    if (options.json) for (const sum of groups) printJson(toJson(options.by, sum));
    else printCosts(options.by, groups, total);
  });
}

function toJson(by: CostGroup, { of, costNanoUsd, ...counts }: CostSum): object {
  return { by, [by]: of ?? null, ...counts, costNanoUsd: costNanoUsd ?? null };
}

function printCosts(by: CostGroup, groups: readonly CostSum[], total: CostSum): void {
  if (total.calls === 0) {
    printLine("Nothing was paid for.");
    return;
  }
  const zone = timeZone();
  printTable(
    [by === "hour" ? `hour (${zone})` : by, "cost", "calls", "tried again", "tokens in", "tokens out"],
    groups.map((sum) => [
      nameOf(by, sum.of),
      showSum(sum),
      String(sum.calls),
      sum.retried === 0 ? "" : String(sum.retried),
      sum.inputTokens.toLocaleString("en-US"),
      sum.outputTokens.toLocaleString("en-US"),
    ]),
  );
  const left = groups.reduce((rest, { calls }) => rest - calls, total.calls);
  const unlisted = left === 0 ? "" : `, ${left} calls of them not listed (--limit)`;
  printLine(`\nAll: ${showSum(total)} for ${total.calls} calls${unlisted}.`);
}

function nameOf(by: CostGroup, of: CostSum["of"]): string {
  if (of instanceof Date) return `${showDay(of)} ${showClock(of).slice(0, 5)}`;
  return of ?? (by === "tool" ? "(no tool)" : "");
}

/** What is not known is said, never shown as 0. */
export function showSum({
  costNanoUsd,
  unpriced,
  estimated,
  calls,
}: Pick<CostSum, "costNanoUsd" | "unpriced" | "estimated" | "calls">): string {
  if (calls === 0) return "$0";
  const estimates = estimated === 0 ? "" : ` (${estimated} estimated)`;
  if (costNanoUsd === undefined) return `unpriced${estimates}`;
  return `$${formatUsd(costNanoUsd)}${unpriced === 0 ? "" : ` + ${unpriced} unpriced`}${estimates}`;
}
