// `longhaul cancel <thread>`: the stop button, wherever the thread is being run.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { type CancelAnswer, cancelRun } from "../operate/cancelRun.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { printJson, printLine, showTime } from "./output.js";

export function cancelCommand(): Command {
  return databaseCommand("cancel", "stop a thread, whichever process runs it")
    .argument("<thread>", "thread id")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; goes to the thread's history")
    .addHelpText(
      "after",
      "\nNo step starts after it. What was sent already may still happen: it is then recorded, or asked about.\n" +
        "Let the thread go on: longhaul redrive <thread>. Exit code 3: it had ended, or was cancelled before.",
    )
    .action(async (threadId: string, options: ConnectOptions & { by: string; reason?: string }) => {
      const { by, reason } = options;
      const request = { threadId, by, ...(reason === undefined ? {} : { reason }) };
      const answer = await withLedger(options, (ledger) => cancelRun(ledger, request));
      if (options.json) printJson({ threadId, ...answer });
      else for (const line of linesOf(threadId, answer)) printLine(redact(line));
      if (!answer.applied) process.exitCode = 3;
    });
}

function linesOf(threadId: string, { result, applied, cancel, committed, inDoubt }: CancelAnswer): string[] {
  if (cancel === undefined) return [`Thread "${threadId}" had come to its end. Nothing was changed.`];
  const who = applied ? "" : `, by ${cancel.by} at ${showTime(cancel.at)} (UTC)`;
  const lines = [
    result === "cancelled"
      ? `Thread "${threadId}" is cancelled${who}. Let it go on: longhaul redrive ${threadId}`
      : `Cancel of thread "${threadId}" is requested${who}. Its run starts nothing more, and is being told to stop.`,
  ];
  if (committed.length > 0)
    lines.push(
      `${committed.length} of its writes ${committed.length === 1 ? "stands. Undo it" : "stand. Undo them"}: longhaul compensate ${threadId} --graph <file:export>`,
    );
  if (inDoubt.length > 0) lines.push(`${inDoubt.length} may have happened, or may still: longhaul reconcile list`);
  return lines;
}
