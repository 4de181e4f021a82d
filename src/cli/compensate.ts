// `longhaul compensate <thread>`: undoes what a thread did, newest first, with the undos that its graph declares.
import { pathToFileURL } from "node:url";
import { type Command, InvalidArgumentError } from "commander";
import { InvalidOptionError } from "../core/errors.js";
import { compensate } from "../operate.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

interface CompensateOptions extends ConnectOptions {
  readonly graph: string;
  readonly onFailure: "continue" | "stop";
}

export function compensateCommand(): Command {
  return databaseCommand("compensate", "undo what a thread did, newest first; it takes no new write from then on")
    .argument("<thread>", "thread id")
    .requiredOption("--graph <file:export>", "the durable graph that declares the undos, such as ./dist/graph.js:graph")
    .option("--on-failure <what>", "after an undo that failed: continue or stop", oneOf("continue", "stop"), "continue")
    .addHelpText("after", "\nA TypeScript file needs a loader: NODE_OPTIONS='--import tsx' longhaul compensate …")
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
            : "\nINCOMPLETE. Mend the cause, longhaul redrive, and call this again.",
        );
      }
      if (!report.complete) process.exitCode = 1;
    });
}

async function loadGraph(spec: string): Promise<object> {
  const at = spec.lastIndexOf(":");
  const [file, name] = at > 1 ? [spec.slice(0, at), spec.slice(at + 1)] : [spec, "graph"];
  const module: Record<string, unknown> = await import(pathToFileURL(file).href);
  const graph = module[name];
  if (typeof graph === "object" && graph !== null) return graph;
  throw new InvalidOptionError(`${file} exports no graph called "${name}".`);
}

function oneOf(...values: readonly string[]): (text: string) => string {
  return (text) => {
    if (values.includes(text)) return text;
    throw new InvalidArgumentError(`Expected one of: ${values.join(", ")}.`);
  };
}
