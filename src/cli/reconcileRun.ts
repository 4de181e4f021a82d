// `longhaul reconcile run`: asks the lookups of a graph about every write in doubt, without running the graph.
import type { Command } from "commander";
import { ThreadBusyError } from "../core/errors.js";
import type { SettledStep } from "../core/settleThread.js";
import type { Ledger } from "../langgraph/ledger.js";
import { reconcile } from "../operate/reconcile.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { graphOption, loaderHelp, loadGraph } from "./loadGraph.js";
import { printJson, printLine } from "./output.js";

/** What became of one thread. */
interface Reconciled {
  readonly threadId: string;
  readonly settled: readonly SettledStep[];
  /** Writes that a person must settle; those with a time are asked about again from then on. */
  readonly open: readonly { readonly key: string; readonly name: string; readonly dueAt: Date | undefined }[];
  /** Nothing was asked: a run has the thread. */
  readonly busy?: string;
}

export function runCommand(): Command {
  return databaseCommand(
    "run",
    "ask the lookups of a graph about all that is in doubt; exits 1 when something stays open",
  )
    .argument("[threads...]", "thread ids; all that have something in doubt when none is given")
    .requiredOption(graphOption, "the durable graph that declares the lookups, such as ./dist/graph.js:graph")
    .addHelpText("after", loaderHelp("reconcile run"))
    .action(async (threads: string[], options: ConnectOptions & { graph: string }) => {
      const graph = await loadGraph(options.graph);
      await withLedger(options, async (ledger, database) => {
        for (const threadId of threads.length > 0 ? threads : await threadsInDoubt(database)) {
          const result = await reconcileOne(ledger, graph, threadId);
          if (options.json) printJson(result);
          else printResult(result);
          if (result.open.length > 0 || result.busy !== undefined) process.exitCode = 1;
        }
      });
    });
}

async function threadsInDoubt(database: PooledDatabase): Promise<string[]> {
  const steps = await unsettledSteps(database, 10_000);
  return [...new Set(steps.map(({ position }) => position.threadId))];
}

async function reconcileOne(ledger: Ledger, graph: object, threadId: string): Promise<Reconciled> {
  try {
    const { settled, open } = await reconcile(ledger, graph, { threadId });
    return { threadId, settled, open: open.map(({ key, name, dueAt }) => ({ key, name, dueAt })) };
  } catch (error) {
    if (!(error instanceof ThreadBusyError)) throw error;
    return { threadId, settled: [], open: [], busy: error.message };
  }
}

function printResult({ threadId, settled, open, busy }: Reconciled): void {
  for (const { name, outcome } of settled) printLine(`${threadId}  ${name}: ${outcome}`);
  for (const { key, name, dueAt } of open) {
    if (dueAt === undefined)
      printLine(
        `${threadId}  ${name}: OPEN, no lookup of this graph can tell. For a person: longhaul reconcile settle ${key} …`,
      );
    else printLine(`${threadId}  ${name}: not known yet, asked again from ${dueAt.toISOString()}`);
  }
  if (busy !== undefined) printLine(`${threadId}  ${busy}`);
}
