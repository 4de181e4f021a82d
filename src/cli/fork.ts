// `longhaul fork <thread> [checkpoint]`: goes back to a point of a thread's past; without one it lists them.
import { type Command, Option } from "commander";
import { forkPoints } from "../checkpoint/index.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { ledgerOf } from "../langgraph/run/durableRun.js";
import { type ForkRequest, fork } from "../operate/fork.js";
import { type ConnectOptions, databaseCommand, systemUser, withCurrent } from "./connect.js";
import { graphOption, loaderHelp, loadGraph } from "./loadGraph.js";
import { printJson, printLine, printTable, showTime } from "./output.js";

interface ForkOptions extends ConnectOptions {
  readonly graph?: string;
  readonly by: string;
  readonly onFork?: "ask" | "run";
  readonly reuse: "none" | "equal-input";
}

/** Points that are listed: the newest. */
const LISTED = 50;

export function forkCommand(): Command {
  return databaseCommand("fork", "go on with a thread from a point of its past; without a checkpoint, list the points")
    .argument("<thread>", "thread id")
    .argument("[checkpoint]", "the point to go on from")
    .option(graphOption, "the thread's durable graph, such as ./dist/graph.js:graph; it names the database too")
    .option("--by <who>", "who says so; goes to the thread's history", systemUser())
    .addOption(
      new Option(
        "--on-fork <what>",
        "a write that was done with the same input: ask a person, or run it again",
      ).choices(["ask", "run"]),
    )
    .addOption(
      new Option(
        "--reuse <what>",
        "reads and model calls with equal inputs: make them anew (none), or reuse what is recorded",
      )
        .choices(["none", "equal-input"])
        .default("none"),
    )
    .addHelpText(
      "after",
      `\nWhat ran before the point is not run again; after it approvals are asked again. Refused while a write is in doubt.${loaderHelp("fork")}`,
    )
    .action((threadId: string, checkpointId: string | undefined, options: ForkOptions) =>
      checkpointId === undefined ? list(threadId, options) : forkAt(threadId, checkpointId, options),
    );
}

async function forkAt(threadId: string, checkpointId: string, options: ForkOptions): Promise<void> {
  const { graph: spec, by, onFork, reuse, json } = options;
  if (spec === undefined) throw new InvalidOptionError("A fork needs the thread's graph: --graph <file:export>.");
  const graph = await loadGraph(spec);
  const ledger = ledgerOf(graph);
  if (ledger === undefined) throw new InvalidOptionError(`${spec} is no durable graph.`);
  const request: ForkRequest = { threadId, checkpointId, by, reuse, ...(onFork === undefined ? {} : { onFork }) };
  try {
    const answer = await fork(ledger, graph, request);
    if (json) printJson(answer);
    else {
      printLine(`Thread "${threadId}" is at ${answer.checkpointId} now, a branch from ${answer.from}.`);
      printLine("Edit it with updateState, or run it with null as input.");
    }
  } finally {
    await ledger.close();
  }
}

function list(threadId: string, options: ForkOptions): Promise<void> {
  return withCurrent(options, async (database) => {
    const points = await forkPoints(database, checkId("thread", threadId), LISTED);
    if (points.length === 0)
      throw new NotFoundError(`Thread "${threadId}" has no checkpoint. List threads: longhaul runs`);
    if (options.json) for (const point of points) printJson({ threadId, ...point });
    else {
      printTable(
        ["checkpoint", "step", "made by", "at", ""],
        points.map(({ checkpointId, step, source, at, isHead }) => [
          checkpointId,
          String(step ?? ""),
          source ?? "",
          showTime(at),
          isHead ? "head" : "",
        ]),
      );
    }
  });
}
