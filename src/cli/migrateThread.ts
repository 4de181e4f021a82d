// `longhaul migrate-thread <thread> --to <name@version>`: a person moves a thread to other versions.
import { type Command, InvalidArgumentError } from "commander";
import { redact } from "../core/failure.js";
import { migrateThread } from "../operate/migrateThread.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { graphOption, loaderHelp, loadGraph } from "./loadGraph.js";
import { goesOn, printJson, printLine, printTable } from "./output.js";

interface Options extends ConnectOptions {
  readonly to: Record<string, string>;
  readonly by: string;
  readonly graph?: string;
  readonly dryRun?: boolean;
}

export function migrateThreadCommand(): Command {
  return databaseCommand("migrate-thread", "move a thread to other versions of what it is held to")
    .argument("<thread>", "thread id")
    .requiredOption(
      "--to <name@version...>",
      "a tool, an operation or a pin, and its version; several are moved together",
      pinTo,
    )
    .option("--by <who>", "who says so; recorded", systemUser())
    .option(graphOption, "the build that has the versions, where no thread has used them yet")
    .option("--dry-run", "say what would change, and change nothing")
    .addHelpText(
      "after",
      `\nRecorded steps stay as they are. Exit code 3: the thread had these versions already.${loaderHelp("migrate-thread")}`,
    )
    .action(async (threadId: string, { to, by, graph: file, dryRun = false, ...options }: Options) => {
      const graph = file === undefined ? {} : { graph: await loadGraph(file) };
      const answer = await withLedger(options, (ledger) =>
        migrateThread(ledger, { threadId, to, by, dryRun, ...graph }),
      );
      const { moved, pins, askedAnew } = answer;
      if (pins.length === 0) process.exitCode = 3;
      if (options.json) return printJson({ threadId, dryRun, ...answer });
      if (pins.length === 0) return printLine("The thread has these versions already. Nothing was changed.");
      printTable(
        ["name", "from", "to", "verdict", "what differs"],
        pins.map((pin) => [pin.name, pin.from, pin.to, pin.verdict, pin.detail].map(redact)),
      );
      if (!moved) return printLine("This was a dry run: nothing was changed.");
      const anew = askedAnew === 0 ? "" : ` Asked anew: ${askedAnew}. ${goesOn(threadId)}`;
      printLine(redact(`Moved by ${by}.${anew}`));
    });
}

/** `mail@2.0.0`; a name may have an @ of its own. */
function pinTo(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.lastIndexOf("@");
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError("Expected <name>@<version>, such as mail@2.0.0.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
