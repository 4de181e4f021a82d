// `longhaul tools`: every version of a tool that was ever used, and which threads are held to it.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { pinsInUse } from "../postgres/pinReads.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { printJson, printLine, printTable, showTime } from "./output.js";

export function toolsCommand(): Command {
  return databaseCommand("tools", "list the versions of tools and pins, and the threads that are held to them")
    .addHelpText(
      "after",
      "\n`open` counts the threads that will run again: a version is needed as long as one of them is held to it.\n" +
        "What a new build would do to them: longhaul drift --against <file:export>",
    )
    .action(async (options: ConnectOptions) => {
      const uses = await withCurrent(options, (database) => pinsInUse(database));
      if (options.json) {
        for (const { shape, ...use } of uses) printJson({ ...use, effect: shape?.effect });
        return;
      }
      if (uses.length === 0) return printLine("No tool was used yet, and no thread is held to anything.");
      printTable(
        ["name", "version", "kind", "registered (UTC)", "fingerprint", "threads", "open"],
        uses.map(({ name, version, kind, registeredAt, fingerprint = "", threads, open }) => [
          redact(name),
          redact(version),
          kind,
          showTime(registeredAt),
          fingerprint.slice(0, 12),
          String(threads),
          String(open),
        ]),
      );
    });
}
