// `longhaul delete-thread <thread>`: erases a thread, and says what it has to wait for.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { type DeleteAnswer, deleteThread } from "../operate/deleteThread.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

export function deleteThreadCommand(): Command {
  return databaseCommand("delete-thread", "delete a thread for good: checkpoints, steps, approvals, budgets")
    .argument("<thread>", "thread id")
    .option("--by <who>", "who says so; kept with the thread's id", systemUser())
    .addHelpText(
      "after",
      "\nThe thread is cancelled first. While a run has it or a write of it is in doubt it waits; whoever sweeps completes it.\n" +
        "For audit the table deleted_effects keeps that its writes were made, and nothing that went in or out.\n" +
        "Exit code 3: it waits.",
    )
    .action(async (threadId: string, options: ConnectOptions & { by: string }) => {
      const answer = await withLedger(options, (ledger) => deleteThread(ledger, { threadId, by: options.by }));
      if (options.json) printJson({ threadId, ...answer });
      else for (const line of linesOf(threadId, answer)) printLine(redact(line));
      if (answer.result === "waits") process.exitCode = 3;
    });
}

function linesOf(threadId: string, answer: DeleteAnswer): string[] {
  const { result, applied, running, inDoubt, effectsKept, innerThreads } = answer;
  if (!applied) return [`Thread "${threadId}" had been deleted before.`];
  const lines: string[] = [];
  if (result === "deleted")
    lines.push(
      `Thread "${threadId}" is deleted. Kept for audit: ${effectsKept} write(s), without what went in or out.`,
    );
  else lines.push(`Thread "${threadId}" is stopped, and is deleted as soon as it can be. Whoever sweeps completes it.`);
  if (running) lines.push("A run still has it, and is being told to stop.");
  if (inDoubt.length > 0) lines.push(`${inDoubt.length} of its writes must be settled first: longhaul reconcile list`);
  if (innerThreads.length > 0) lines.push(`Threads that ran inside it are still there: ${innerThreads.join(", ")}`);
  return lines;
}
