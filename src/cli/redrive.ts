// `longhaul redrive <thread>`: a thread goes on from its failed steps; every recorded success stays.
import type { Command } from "commander";
import { redrive } from "../operate.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

export function redriveCommand(): Command {
  return databaseCommand("redrive", "let a thread go on from its failed steps, after the cause is mended")
    .argument("<thread>", "thread id")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; goes to the steps' history")
    .action(async (threadId: string, options: ConnectOptions & { by: string; reason?: string }) => {
      const { by, reason } = options;
      const request = { threadId, by, ...(reason === undefined ? {} : { reason }) };
      const redriven = await withLedger(options, (ledger) => redrive(ledger, request));
      if (options.json) printJson({ threadId, redriven });
      else if (redriven.length === 0)
        printLine(
          "No recorded step of this thread has failed, or it was written off, which is for good. Nothing was changed.",
        );
      else printLine(`${redriven.length} failed steps are ready again. Run thread "${threadId}" with null as input.`);
      if (redriven.length === 0) process.exitCode = 3;
    });
}
