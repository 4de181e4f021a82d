// `longhaul compensate <thread>`: undoes what a thread did, newest first, with the undos that its graph declares.
import { type Command, InvalidArgumentError } from "commander";
import { compensate } from "../operate/compensate.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { graphOption, loaderHelp, loadGraph } from "./loadGraph.js";
import { printJson, printLine } from "./output.js";

interface CompensateOptions extends ConnectOptions {
  readonly graph: string;
  readonly onFailure: "continue" | "stop";
}

export function compensateCommand(): Command {
  return databaseCommand("compensate", "undo what a thread did, newest first; it takes no new write from then on")
    .argument("<thread>", "thread id")
    .requiredOption(graphOption, "the durable graph that declares the undos, such as ./dist/graph.js:graph")
    .option("--on-failure <what>", "after an undo that failed: continue or stop", oneOf("continue", "stop"), "continue")
    .addHelpText("after", loaderHelp("compensate"))
    .action(async (threadId: string, options: CompensateOptions) => {
      const graph = await loadGraph(options.graph);
      const report = await withLedger(options, (ledger) =>
        compensate(ledger, graph, { threadId, onFailure: options.onFailure }),
      );
      if (options.json) printJson({ threadId, ...report });
      else {
        for (const { name } of report.undone) printLine(`undone       ${name}`);
        for (const { name, message } of report.failed) printLine(`NOT UNDONE   ${name}: ${message}`);
        for (const { name } of report.notDeclared) printLine(`no undo for  ${name}`);
        printLine(
          report.complete
            ? "\nEverything that has an undo is undone."
            : "\nINCOMPLETE. Mend the cause and call this again: what is undone stays undone.",
        );
      }
      if (!report.complete) process.exitCode = 1;
    });
}

function oneOf(...values: readonly string[]): (text: string) => string {
  return (text) => {
    if (values.includes(text)) return text;
    throw new InvalidArgumentError(`Expected one of: ${values.join(", ")}.`);
  };
}
