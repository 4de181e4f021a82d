// Runs due threads in this process: which graph a thread belongs to, what it left with, and how all of them are stopped
// when the process is. A thread that fails does not stop the others.
import { isInterrupted, RunControl } from "@langchain/langgraph";
import { InvalidOptionError, isLonghaulError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { drainReason, isDrained } from "../langgraph/leave.js";
import { durableName } from "../langgraph/run/durableRun.js";
import { type DueThread, handOver } from "../postgres/due.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { ledgerNow, wakeThread } from "../postgres/runs.js";
import type { WakeOutcome, WorkerEvent } from "./waker.js";

/** A graph that durableGraph made. */
export interface WakeableGraph {
  invoke(input: null, options?: object): Promise<unknown>;
}

/** The graphs of a worker by the names under which their threads are recorded. */
export type Graphs = ReadonlyMap<string, WakeableGraph>;

/** @throws InvalidOptionError for what is no durable graph. */
export function graphsByName(graphs: WakeableGraph | Readonly<Record<string, WakeableGraph>>): Graphs {
  const only = durableName(graphs);
  if (only !== undefined) return new Map([[only, graphs as WakeableGraph]]);
  const named = Object.entries(graphs);
  for (const [name, graph] of named) {
    if (typeof graph !== "object" || graph === null || durableName(graph) === undefined) {
      throw new InvalidOptionError(`Expected the graph "${name}" to be one that durableGraph made.`);
    }
  }
  if (named.length === 0) throw new InvalidOptionError("Expected `graphs` to hold at least one durable graph.");
  return new Map(named);
}

export interface RunnerOptions {
  readonly graphs: Graphs;
  /** For every run: `recursionLimit` and what else invoke() takes. */
  readonly config: object;
  readonly database: () => Promise<PooledDatabase>;
  readonly onEvent: (event: WorkerEvent) => void;
  readonly onError: (error: unknown, threadId?: string) => void;
}

interface RunningThread {
  readonly control: RunControl;
  readonly abort: AbortController;
  readonly ended: Promise<unknown>;
}

/** A run that could not write to the ledger is tried again when the database may be back. */
const UNRECORDED_MS = 5_000;
/** The lease of a busy thread may end at any moment, and its end brings the wake back: no need to look often. */
const BUSY_MS = 5_000;

/** From an abort to its end, for what heeds it. */
const ABORT_MS = 5_000;

function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

export class ThreadRunner {
  readonly #running = new Map<string, RunningThread>();
  #stopping = false;

  constructor(readonly options: RunnerOptions) {}

  get threads(): string[] {
    return [...this.#running.keys()];
  }

  async run({ threadId, graph: name }: Pick<DueThread, "threadId" | "graph">): Promise<WakeOutcome> {
    const { graphs, onEvent, onError } = this.options;
    const graph = name === undefined && graphs.size === 1 ? [...graphs.values()][0] : graphs.get(name ?? "");
    if (graph === undefined) {
      onEvent({ type: "unknown-graph", threadId, graph: name ?? "" });
      return { to: "busy", againInMs: BUSY_MS };
    }
    if (this.#stopping || this.#running.has(threadId)) return { to: "busy", againInMs: BUSY_MS };
    const control = new RunControl();
    const abort = new AbortController();
    const ended = this.#invoke(graph, threadId, control, abort.signal);
    this.#running.set(threadId, { control, abort, ended });
    try {
      return await ended;
    } catch (error) {
      onError(error, threadId);
      return { to: "ran" };
    } finally {
      this.#running.delete(threadId);
    }
  }

  async #invoke(
    graph: WakeableGraph,
    threadId: string,
    control: RunControl,
    signal: AbortSignal,
  ): Promise<WakeOutcome> {
    const { config, onEvent, onError } = this.options;
    try {
      const result = await graph.invoke(null, { ...config, configurable: { thread_id: threadId }, control, signal });
      onEvent({ type: "done", threadId, as: isInterrupted(result) ? "waiting" : "done" });
      return { to: "ran" };
    } catch (error) {
      if (isDrained(error)) return this.#left(error, threadId);
      if (isLonghaulError(error) && error.code === "CANCELLED") {
        onEvent({ type: "left", threadId, kind: "cancelled" });
        return { to: "ran" };
      }
      onEvent({ type: "failed", threadId, error: redact(error instanceof Error ? error.message : String(error)) });
      onError(error, threadId);
      return { to: "ran" };
    }
  }

  async #left(error: unknown, threadId: string): Promise<WakeOutcome> {
    const { database, onEvent } = this.options;
    const reason = drainReason(error);
    switch (reason?.kind) {
      case "due":
        onEvent({ type: "due", threadId, dueAt: reason.dueAt ?? "" });
        return { to: "ran" };
      case "busy":
        onEvent({ type: "busy", threadId });
        return { to: "busy", againInMs: BUSY_MS };
      case "unrecorded": {
        const open = await database();
        const again = new Date((await ledgerNow(open)).getTime() + UNRECORDED_MS);
        await wakeThread(open, threadId, again, "the database could not be reached");
        onEvent({ type: "due", threadId, dueAt: again.toISOString() });
        return { to: "ran" };
      }
      default:
        onEvent({ type: "left", threadId, kind: reason?.kind ?? "stopped" });
        return { to: "ran" };
    }
  }

  /**
   * Has every run stop after its superstep, and aborts those that have not by then. The wakes are written first: another
   * worker goes on also when this one is killed meanwhile.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const running = [...this.#running];
    if (running.length === 0) return;
    await handOver(await this.options.database(), [...this.#running.keys()]);
    for (const [, { control }] of running) control.requestDrain("its worker was stopped");
    const ended = Promise.allSettled(running.map(([, run]) => run.ended));
    if (await within(ended, graceMs)) return;
    for (const [, { abort }] of running) abort.abort(new Error("The worker's grace time was over."));
    // A step that does not heed its signal ends with the process; its lease tells the next worker so.
    await within(ended, ABORT_MS);
  }
}
