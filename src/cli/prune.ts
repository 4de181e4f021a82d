// `longhaul prune`: removes old checkpoints, and the steps that no run can come back to.
import { type Command, InvalidArgumentError } from "commander";
import { redact } from "../core/failure.js";
import { type PruneReport, type PruneRequest, prune } from "../operate/prune.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { positiveInteger, printJson, printLine } from "./output.js";

interface PruneOptions extends ConnectOptions {
  readonly keepLast?: number;
  readonly olderThan?: number;
  readonly thread?: string;
  readonly dryRun?: boolean;
}

export function pruneCommand(): Command {
  return databaseCommand("prune", "remove old checkpoints, and the steps that no run can come back to")
    .option("--keep-last <n>", "checkpoints of each thread that stay whatever their age (default: 1)", positiveInteger)
    .option("--older-than <duration>", "only what is older: 90s, 30m, 12h, 30d", duration)
    .option("--thread <id>", "this thread alone")
    .option("--dry-run", "remove nothing; say what would go")
    .addHelpText(
      "after",
      "\nGive --keep-last, --older-than or both. Whatever is open, waits for a person or is in doubt stays, with all that came\n" +
        "after it. Safe while runs go on. To erase a whole thread: longhaul delete-thread <thread>.",
    )
    .action(async (options: PruneOptions) => {
      const { keepLast, olderThan, thread, dryRun = false } = options;
      const request: PruneRequest = {
        dryRun,
        ...(keepLast === undefined ? {} : { keepLast }),
        ...(olderThan === undefined ? {} : { olderThanMs: olderThan }),
        ...(thread === undefined ? {} : { threadId: thread }),
      };
      const report = await withLedger(options, (ledger) => prune(ledger, request));
      if (options.json) printJson({ dryRun, ...report });
      else for (const line of linesOf(report, dryRun)) printLine(redact(line));
    });
}

function linesOf({ threads, checkpoints, steps, bytes, skipped }: PruneReport, dryRun: boolean): string[] {
  const verb = dryRun ? "Would remove" : "Removed";
  const lines = [
    `${verb} ${checkpoints} checkpoints and ${steps} steps of ${threads} threads: ${(bytes / 1e6).toFixed(1)} MB of checkpoints.`,
  ];
  if (skipped.length > 0)
    lines.push(`Left alone, as a run is in their past or they are being deleted: ${skipped.join(", ")}`);
  return lines;
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function duration(text: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  if (count === undefined || unitMs === undefined)
    throw new InvalidArgumentError("Expected a duration: 90s, 30m, 12h, 30d.");
  return Number(count) * unitMs;
}
