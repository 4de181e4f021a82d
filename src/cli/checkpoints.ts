// `longhaul checkpoints export`: threads in the form of LangGraph's own PostgresSaver, where they are.
import { Command } from "commander";
import { exportThread, threadsWithCheckpoints } from "../checkpoint/index.js";
import { InvalidOptionError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

interface ExportOptions extends ConnectOptions {
  readonly all?: boolean;
}

export function checkpointsCommand(): Command {
  const exportCommand = databaseCommand("export", "give threads back in the form of LangGraph's own PostgresSaver")
    .argument("[thread]", "the thread")
    .option("--all", "every thread of the schema")
    .addHelpText(
      "after",
      "\nValues are rewritten in place, in one transaction a thread: PostgresSaver reads the thread in this schema, and so does the\n" +
        "ledger's own. A thread with a value that PostgresSaver would change (a BigInt, a Date) is left as it is; exit code 1.",
    )
    .action(async (thread: string | undefined, options: ExportOptions) => {
      if ((thread === undefined) === (options.all !== true)) {
        throw new InvalidOptionError("Name a thread, or give --all.");
      }
      await withLedger(options, async (_ledger, database) => {
        for await (const threadId of threads(database, thread)) await exportOne(database, threadId, options);
      });
    });
  return new Command("checkpoints").description("checkpoints in other forms").addCommand(exportCommand);
}

async function* threads(database: PooledDatabase, thread: string | undefined): AsyncGenerator<string> {
  if (thread !== undefined) return yield thread;
  for (let after = ""; ; ) {
    const page = await threadsWithCheckpoints(database, after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

async function exportOne(database: PooledDatabase, threadId: string, options: ExportOptions): Promise<void> {
  const exported = await exportThread(database, threadId);
  const { values, refused, otherHead } = exported;
  if (refused.length > 0) process.exitCode = 1;
  if (options.json) return printJson(exported);
  if (refused.length > 0) {
    return printLine(redact(`Left as it is: ${threadId}. PostgresSaver would change ${refused.join("; ")}`));
  }
  const head = otherHead.length > 0 ? " PostgresSaver takes another checkpoint for the newest: clocks differed." : "";
  printLine(redact(`Exported: ${threadId} (${values} values).${head}`));
}
