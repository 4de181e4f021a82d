// `longhaul redrive <thread>`: a thread goes on from its failed steps; every recorded success stays.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { checkId } from "../core/key.js";
import { redrive } from "../operate/redrive.js";
import { listThreads } from "../postgres/runs.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { goesOn, printJson, printLine } from "./output.js";

export function redriveCommand(): Command {
  return databaseCommand(
    "redrive",
    "let a thread go on from its failed steps, after the cause is mended, or after a cancel",
  )
    .argument("<thread>", "thread id")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; goes to the steps' history")
    .action(async (threadId: string, options: ConnectOptions & { by: string; reason?: string }) => {
      const { by, reason } = options;
      const request = { threadId, by, ...(reason === undefined ? {} : { reason }) };
      const { redriven, cancel } = await withLedger(options, async (ledger, database) => {
        const [before] = await listThreads(database, { threadId: checkId("thread", threadId), limit: 1 });
        return { redriven: await redrive(ledger, request), cancel: before?.cancel };
      });
      if (options.json) printJson({ threadId, redriven, cancelLifted: cancel !== undefined });
      else if (cancel !== undefined) printLine(redact(`The cancel by ${cancel.by} is lifted. ${goesOn(threadId)}`));
      else if (redriven.length === 0)
        printLine(
          "No recorded step of this thread has failed, or it was written off, which is for good. Nothing was changed.",
        );
      else
        printLine(
          `${redriven.length === 1 ? "1 failed step is" : `${redriven.length} failed steps are`} ready again. ${goesOn(threadId)}`,
        );
      if (redriven.length === 0 && cancel === undefined) process.exitCode = 3;
    });
}
