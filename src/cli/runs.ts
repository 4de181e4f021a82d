// `longhaul runs`: the threads, what they are doing and what they cost.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { formatUsd } from "../core/price.js";
import { listThreads, type ThreadSummary } from "../postgres/runs.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { positiveInteger, printJson, printLine, printTable, showTime } from "./output.js";

export function runsCommand(): Command {
  return databaseCommand("runs", "list threads, the one that changed last first")
    .option("--limit <n>", "how many", positiveInteger, 50)
    .action(async (options: ConnectOptions & { limit: number }) => {
      const threads = await withCurrent(options, (database) => listThreads(database, { limit: options.limit }));
      if (options.json) for (const thread of threads) printJson(thread);
      else if (threads.length === 0) printLine("No thread has run yet.");
      else printTable(["thread", "state", "steps", "open", "cost", "changed (UTC)", "note"], threads.map(toRow));
    });
}

function toRow(thread: ThreadSummary): string[] {
  const unpriced = thread.unpricedCalls === 0 ? "" : ` + ${thread.unpricedCalls} unpriced`;
  return [
    thread.threadId,
    thread.state,
    String(thread.steps),
    String(thread.open),
    `$${formatUsd(thread.costNanoUsd)}${unpriced}`,
    showTime(thread.updatedAt),
    noteOf(thread),
  ];
}

function noteOf({ state, holder, error, dueAt, dueReason, cancel }: ThreadSummary): string {
  if (cancel !== undefined) return redact(`by ${cancel.by}${cancel.reason ? `: ${cancel.reason}` : ""}`).slice(0, 70);
  if (state === "running" && holder !== undefined) return `process ${holder.pid} on ${holder.host}`;
  if (dueAt !== undefined) return `run it again from ${showTime(dueAt)}: ${dueReason}`.slice(0, 70);
  if (state === "due") return "its process is gone; run it again";
  if (state === "waiting" && error !== undefined) return error.message.slice(0, 70);
  if (state === "failed" && error !== undefined) return `${error.name}: ${error.message}`.slice(0, 60);
  return state === "waiting" ? "for a person: longhaul approvals list, reconcile list, or its own question" : "";
}
