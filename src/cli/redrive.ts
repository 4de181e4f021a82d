// `longhaul redrive <key>`: a step that failed for good may run again; every recorded success stays.
import type { Command } from "commander";
import { redrive } from "../operate.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

export function redriveCommand(): Command {
  return databaseCommand("redrive", "let a step that failed for good run again")
    .argument("<key>", "the step's key, from `longhaul show <thread> --json`")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; goes to the step's history")
    .action(async (idempotencyKey: string, options: ConnectOptions & { by: string; reason?: string }) => {
      const { by, reason } = options;
      const request = { idempotencyKey, by, ...(reason === undefined ? {} : { reason }) };
      const moved = await withLedger(options, (ledger) => redrive(ledger, request));
      if (options.json) printJson({ key: idempotencyKey, redriven: moved });
      else
        printLine(
          moved ? "It will run again with its thread's next run." : "This step has not failed; nothing was changed.",
        );
      if (!moved) process.exitCode = 3;
    });
}
