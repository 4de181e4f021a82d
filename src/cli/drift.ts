// `longhaul drift --against <graph>`: which sleeping threads a build would stop, before it is deployed.
import type { Command } from "commander";
import { redact } from "../core/failure.js";
import { type DriftFinding, findDrift } from "../core/pinDrift.js";
import { durableName } from "../langgraph/run/durableRun.js";
import { buildVersionsOf } from "../langgraph/version/buildVersions.js";
import { pinsInUse } from "../postgres/pinReads.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { loaderHelp, loadGraph } from "./loadGraph.js";
import { printJson, printLine, printTable } from "./output.js";

export function driftCommand(): Command {
  return databaseCommand("drift", "say which open threads a build would stop; exits 1 when it would stop any")
    .requiredOption("--against <file:export>", "the durable graph of the build")
    .addHelpText(
      "after",
      "\nCompared is what the graph declares in `tools`, `operations` and `pins` with what its threads are held to. `breaking`: such a\n" +
        `thread waits for a person before its next call. Exit code 1: at least one is.${loaderHelp("drift --against ./graph.ts:graph")}`,
    )
    .action(async (options: ConnectOptions & { against: string }) => {
      const graph = await loadGraph(options.against);
      const build = buildVersionsOf(graph);
      const uses = await withCurrent(options, (database) => pinsInUse(database, durableName(graph)));
      const found = findDrift(uses, build);
      if (options.json) for (const finding of found) printJson(finding);
      else show(found);
      if (found.some(({ verdict }) => verdict === "breaking")) process.exitCode = 1;
    });
}

function show(found: readonly DriftFinding[]): void {
  if (found.length === 0) {
    printLine("No open thread is held to anything that this build has.");
    return;
  }
  printTable(
    ["name", "held to", "build", "verdict", "threads", "what differs"],
    found.map(({ name, version, build, verdict, threads, detail, examples }) => [
      redact(name),
      redact(version),
      redact(build ?? "none"),
      verdict,
      `${threads}${verdict === "breaking" && threads > 0 ? ` (${examples.slice(0, 2).map(redact).join(", ")}${threads > 2 ? ", …" : ""})` : ""}`,
      redact(detail),
    ]),
  );
  const breaking = found.filter(({ verdict }) => verdict === "breaking").reduce((sum, { threads }) => sum + threads, 0);
  if (breaking > 0) printLine(`Threads that would wait for a person: ${breaking} (one for each thing that changed).`);
}
