// `startWorker`: runs the threads that are due, in this process or by a waker that has them run elsewhere. Any number of
// workers share the load; what one of them had in hand when it died comes back by itself.
import { InvalidOptionError } from "../core/errors.js";
import { MAX_TIMER_MS, positiveMs } from "../core/lease.js";
import { knownOptions } from "../core/options.js";
import { LEDGER_PARTS, type Ledger } from "../langgraph/ledger.js";
import { ledgerOf } from "../langgraph/run/durableRun.js";
import { databaseOf } from "../openLedger.js";
import { POLL_MS } from "../sweep/serverSweeper.js";
import { DueLoop } from "./dueLoop.js";
import { inProcessWaker } from "./inProcess.js";
import { type Graphs, graphsByName, ThreadRunner, type WakeableGraph } from "./threadRunner.js";
import type { Waker, WakerHost, WorkerEvent } from "./waker.js";

export interface WorkerOptions {
  /** The ledger whose threads are run. */
  readonly ledger: Ledger;
  /**
   * The durable graphs, by the names under which their threads are recorded (`durableGraph`'s `name`, or the one that the
   * graph was compiled with); or one graph. Threads of other graphs are left to other workers, and reported. Only a waker
   * that has threads run elsewhere needs none.
   */
  readonly graphs?: WakeableGraph | Readonly<Record<string, WakeableGraph>>;
  /** Threads that run in this process at once. @default 4 */
  readonly concurrency?: number;
  /** How due threads get to run. @default in this process */
  readonly waker?: Waker;
  /** Stops the worker when it is aborted, as `stop()` does. */
  readonly signal?: AbortSignal;
  /** What every run is given beside its thread, such as `recursionLimit`. @default the graph's own configuration */
  readonly config?: object;
  /** How often it looks when no bell rings: how late a thread may be woken. Milliseconds. @default 1000 */
  readonly pollMs?: number;
  /** How long runs may go on after `stop()` until their superstep is over. Milliseconds. @default 30000 */
  readonly graceMs?: number;
  /** Told what the worker does. Must not throw. */
  readonly onEvent?: (event: WorkerEvent) => void;
  /** Told of every error; none of them stops the worker. @default a process warning */
  readonly onError?: (error: unknown, threadId?: string) => void;
}

const OPTIONS = [
  "ledger",
  "graphs",
  "concurrency",
  "waker",
  "signal",
  "config",
  "pollMs",
  "graceMs",
  "onEvent",
  "onError",
];

/** Container platforms kill after thirty seconds or more. */
const GRACE_MS = 30_000;
/** Threads mostly wait for models and networks; more of them want more connections. */
const CONCURRENCY = 4;
/** What is only handed on, to a queue or a server, needs no place of its own here. */
const AT_ONCE_ELSEWHERE = 32;

export interface RunningWorker {
  /**
   * Takes nothing more, has the runs stop after their superstep, and aborts those that go on for longer than `graceMs`.
   * Their threads are due at once for another worker.
   */
  stop(): Promise<void>;
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>;
}

/**
 * Starts a worker: threads whose time has come, whose question was answered, or whose process died are run again, by any
 * number of workers on any number of machines, one run at a time each. It sweeps as well.
 *
 * @throws InvalidOptionError for options that cannot be.
 * @example
 * const worker = startWorker({ ledger, graphs: graph });
 * process.once("SIGTERM", () => worker.stop());
 */
export function startWorker(options: WorkerOptions): RunningWorker {
  const { ledger, waker = inProcessWaker(), concurrency = CONCURRENCY, pollMs = POLL_MS, graceMs = GRACE_MS } = options;
  const graphs = checkWorker(options, waker);
  const onEvent = options.onEvent ?? (() => {});
  const onError = options.onError ?? warn;
  const database = () => databaseOf(ledger);
  const runner = new ThreadRunner({ graphs, config: options.config ?? {}, database, onEvent, onError });
  const host: WakerHost = { concurrency, run: (thread) => runner.run(thread), onError };
  const names = waker.elsewhere && graphs.size === 0 ? undefined : [...graphs.keys()];
  let loop: DueLoop | undefined;
  let stopping: Promise<void> | undefined;
  const started = (waker.start?.(host) ?? Promise.resolve()).then(() => {
    if (stopping !== undefined) return;
    const atOnce = waker.name === "in-process" ? concurrency : AT_ONCE_ELSEWHERE;
    loop = new DueLoop({ database, waker, host, graphs: names, pollMs, atOnce, background: false, onEvent });
  });
  let ended: () => void = () => {};
  const stopped = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const stopAll = async () => {
    await started.catch(() => undefined);
    await loop?.stop();
    await waker.stop?.();
    await runner.stop(graceMs);
    await waker.close?.();
  };
  const stop = () => {
    stopping ??= stopAll().finally(ended);
    return stopping;
  };
  started.catch((error: unknown) => {
    onError(error);
    void stop();
  });
  const quietly = () => void stop().catch(onError);
  if (options.signal?.aborted) quietly();
  else options.signal?.addEventListener("abort", quietly, { once: true });
  return { stop, stopped };
}

function warn(error: unknown, threadId?: string): void {
  const what = threadId === undefined ? "The worker" : `The worker's run of thread "${threadId}"`;
  process.emitWarning(`${what} failed: ${error instanceof Error ? error.message : String(error)}`, {
    code: "LONGHAUL_WORKER",
  });
}

function checkWorker(options: WorkerOptions, waker: Waker): Graphs {
  knownOptions("startWorker", options, OPTIONS);
  const { ledger, graphs, concurrency = CONCURRENCY, pollMs = POLL_MS, graceMs = GRACE_MS } = options;
  if (ledger?.[LEDGER_PARTS] === undefined) {
    throw new InvalidOptionError("Expected `ledger` to be what openLedger() returned.");
  }
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000) {
    throw new InvalidOptionError(`Expected \`concurrency\` to be a whole number from 1 to 1000, got ${concurrency}.`);
  }
  positiveMs("pollMs", pollMs, MAX_TIMER_MS);
  positiveMs("graceMs", graceMs, MAX_TIMER_MS);
  if (graphs === undefined) {
    if (waker.elsewhere) return new Map();
    throw new InvalidOptionError("A worker that runs threads needs `graphs`: a durable graph, or several by name.");
  }
  const byName = graphsByName(graphs);
  for (const [name, graph] of byName) {
    if (ledgerOf(graph) !== ledger) {
      throw new InvalidOptionError(
        `The graph "${name}" is durable on another ledger than the worker's. Give the worker the same one.`,
      );
    }
  }
  return byName;
}
