// `longhaul worker`: runs the threads that are due, until it is stopped. The graph brings its own ledger; --url says where.
import { InvalidArgumentError } from "commander";
import { InvalidOptionError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { checkUrl } from "../findDatabase.js";
import type { Ledger } from "../langgraph/ledger.js";
import { durableName, ledgerOf } from "../langgraph/run/durableRun.js";
import { openLedger } from "../openLedger.js";
import type { WakeableGraph } from "../worker/threadRunner.js";
import type { Waker, WorkerEvent } from "../worker/waker.js";
import { type RunningWorker, startWorker, type WorkerOptions } from "../worker/worker.js";
import { type ConnectOptions, databaseCommand } from "./connect.js";
import { loaderHelp, loadGraph } from "./loadGraph.js";
import { positiveInteger, printJson, printLine } from "./output.js";
import { WAKERS, type WakerName, wakerFor } from "./wakers.js";

interface WorkerCommand extends ConnectOptions {
  readonly graph: readonly string[];
  readonly concurrency?: number;
  readonly recursionLimit?: number;
  readonly graceMs?: number;
  readonly waker: WakerName;
  readonly server?: string;
}

export function workerCommand() {
  return databaseCommand("worker", "run the threads that are due, until it is stopped (SIGTERM: runs end or are left)")
    .option(
      "--graph <[name=]file:export>",
      "a durable graph, such as ./dist/graph.js:graph; may be given again, with the names of their threads",
      (spec: string, all: readonly string[]) => [...all, spec],
      [] as readonly string[],
    )
    .option("--concurrency <n>", "threads that run here at once (default: 4)", positiveInteger)
    .option("--recursion-limit <n>", "supersteps of one run at most (default: the graph's own)", positiveInteger)
    .option("--grace-ms <ms>", "how long runs may go on after SIGTERM (default: 30000)", positiveInteger)
    .option("--waker <name>", `who runs them: ${WAKERS.join(", ")}`, wakerName, "in-process")
    .option("--server <url>", "address of the LangGraph server, for --waker langgraph-server")
    .addHelpText(
      "after",
      `\n--url is handed to the graph as LONGHAUL_DATABASE_URL. Threads of graphs that were not given are left, and named.${loaderHelp("worker")}`,
    )
    .action(work);
}

function wakerName(text: string): WakerName {
  const known = WAKERS.find((name) => name === text);
  if (known === undefined) throw new InvalidArgumentError(`Expected one of ${WAKERS.join(", ")}.`);
  return known;
}

async function work(options: WorkerCommand): Promise<void> {
  // Before the graph is loaded: its ledger reads the environment at first use.
  if (options.url !== undefined) process.env["LONGHAUL_DATABASE_URL"] = checkUrl(options.url);
  const waker = await wakerFor(options);
  const byLedger = await graphsByLedger(options);
  const show = options.json ? ({ type, ...more }: WorkerEvent) => printJson({ event: type, ...more }) : printEvent;
  const workers = [...byLedger].map(([ledger, graphs]) =>
    startWorker({ ledger, ...settings(options, graphs, waker), onEvent: show, onError: tellError(options) }),
  );
  const told = stopOnSignals(workers);
  await Promise.all(workers.map(({ stopped }) => stopped));
  // A worker that stops by itself could not start.
  if (!told()) process.exitCode = 1;
  for (const ledger of byLedger.keys()) await ledger.close();
}

function settings(
  { concurrency, recursionLimit, graceMs }: WorkerCommand,
  graphs: Readonly<Record<string, WakeableGraph>>,
  waker: Waker | undefined,
): Omit<WorkerOptions, "ledger"> {
  return {
    ...(Object.keys(graphs).length === 0 ? {} : { graphs }),
    ...(waker === undefined ? {} : { waker }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(graceMs === undefined ? {} : { graceMs }),
    ...(recursionLimit === undefined ? {} : { config: { recursionLimit } }),
  };
}

/** Each module may have opened a ledger of its own. */
async function graphsByLedger(options: WorkerCommand): Promise<Map<Ledger, Record<string, WakeableGraph>>> {
  const byLedger = new Map<Ledger, Record<string, WakeableGraph>>();
  for (const spec of options.graph) {
    const [, given, file = spec] = /^([^=/\\.]+)=(.*)$/.exec(spec) ?? [];
    const graph = await loadGraph(file);
    const ledger = ledgerOf(graph);
    const name = given ?? durableName(graph);
    if (ledger === undefined || name === undefined) {
      throw new InvalidOptionError(`${file} is no graph that durableGraph made.`);
    }
    const graphs = byLedger.get(ledger) ?? {};
    if (name in graphs) {
      throw new InvalidOptionError(`Two graphs are called "${name}". Name them: --graph <name>=${file}`);
    }
    byLedger.set(ledger, { ...graphs, [name]: graph as WakeableGraph });
  }
  if (byLedger.size === 0) {
    if (options.waker !== "langgraph-server") {
      throw new InvalidOptionError("Give the graphs whose threads are run here: --graph ./dist/graph.js:graph");
    }
    byLedger.set(openLedger({ schema: options.schema, onLine: (line) => process.stderr.write(`${line}\n`) }), {});
  }
  return byLedger;
}

/** What no thread's own event tells, such as a database that is away. */
function tellError({ json }: WorkerCommand): (error: unknown, threadId?: string) => void {
  let last: string | undefined;
  let lastAt = 0;
  return (error, threadId) => {
    const message = redact(error instanceof Error ? error.message : String(error));
    // What goes on being wrong is told once a minute.
    if (threadId !== undefined || (message === last && Date.now() - lastAt < 60_000)) return;
    [last, lastAt] = [message, Date.now()];
    if (json) printJson({ event: "error", message });
    else process.stderr.write(`longhaul: ${message}\n`);
  };
}

/** The first signal ends the work in order; a second one ends the process. Tells whether there was one. */
function stopOnSignals(workers: readonly RunningWorker[]): () => boolean {
  let told = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      told = true;
      process.once(signal, () => process.exit(1));
      for (const worker of workers) void worker.stop().catch(() => undefined);
    });
  }
  return () => told;
}

function printEvent(event: WorkerEvent): void {
  printLine(`${new Date().toISOString().slice(11, 19)}  ${describe(event)}`);
}

function describe(event: WorkerEvent): string {
  switch (event.type) {
    case "swept":
      return `swept: ${Object.entries(event.found)
        .map(([name, n]) => `${n} ${name}`)
        .join(", ")}`;
    case "woke":
      return `${event.threadId}  woke: ${event.reason}`;
    case "done":
      return `${event.threadId}  ${event.as === "done" ? "done" : "waits for a person"}`;
    case "due":
      return `${event.threadId}  due again at ${event.dueAt}`;
    case "left":
      return `${event.threadId}  left: ${event.kind}`;
    case "failed":
      return `${event.threadId}  FAILED: ${event.error}`;
    case "unknown-graph":
      return `threads of the graph "${event.graph}" are due (${event.threadId}), and this worker was not given it`;
    case "listening":
      return "ready; PostgreSQL tells what is due";
    case "polling":
      return "ready; looks every second (nothing is heard on this connection)";
    default:
      return `${event.threadId}  ${event.type}`;
  }
}
