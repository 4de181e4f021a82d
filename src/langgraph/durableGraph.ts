// `durableGraph`: graph in, same graph out. What changes: one run at a time on a thread, checkpoints that cannot be
// overtaken, and a ledger for everything below. It works on a copy of the compiled graph, whose four ways in
// (run, update, copy, checkpointer) are replaced; everything else is LangGraph's own.
import { AsyncLocalStorage } from "node:async_hooks";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { CompiledStateGraph, StateDefinitionInit, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { InvalidOptionError, ThreadBusyError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { foreignBarrier } from "./foreignSaver.js";
import { drained } from "./leave.js";
import { LEDGER_PARTS, type Ledger } from "./ledger.js";
import { Meter, meterIn, withMeter } from "./meter.js";
import type { AnyOperation } from "./operation.js";
import { Run } from "./run.js";
import { ambientConfig } from "./runtime.js";
import type { ToolRegistry } from "./toolRegistry.js";

export interface DurableOptions {
  readonly ledger: Ledger;
  /** Declared effects, so that other processes can look them up. Names must be unique. */
  readonly operations?: readonly AnyOperation[];
  readonly tools?: ToolRegistry;
}

/** What compiled graphs and agents built on them have in common. */
export interface DurableTarget {
  checkpointer?: BaseCheckpointSaver | boolean | undefined;
  withConfig(config: { callbacks?: RunnableConfig["callbacks"] }): unknown;
}

type Flat<T> = { [K in keyof T]: T[K] } & {};
/** The members of a compiled graph that are replaced. Their types are LangGraph's to change, so they stay loose here. */
interface Compiled extends DurableTarget {
  lg_is_pregel: true;
  name?: string;
  config?: RunnableConfig;
  nodes: Record<string, { retryPolicy?: unknown; bound?: unknown; subgraphs?: unknown[] }>;
  _streamIterator(input: unknown, options?: RunOptions): AsyncGenerator<unknown>;
  bulkUpdateState(config: RunOptions, supersteps: unknown): Promise<RunnableConfig>;
  withConfig(config: object): Compiled;
}
type RunOptions = RunnableConfig & { durability?: string; checkpointDuring?: boolean };

const DURABLE = Symbol.for("langgraph-longhaul.durable");

/**
 * Makes a graph durable: the same graph comes out, with the same type. Give it a compiled graph, or a builder to be
 * compiled.
 *
 * One run at a time holds a thread; a second one ends before any node with GraphDrained (`drainReason(error)` says
 * why and until when). Without a checkpointer of its own the graph uses the ledger's. A checkpointer that was given
 * is kept: steps are as safe, but the guard against a second writer of checkpoints is then not there.
 *
 * @throws InvalidOptionError at construction for options it cannot honour, and at `invoke` for a missing `thread_id`
 * or `durability: "exit"` (a crash would leave nothing to go on from).
 * @example
 * const ledger = openLedger();
 * export const graph = durableGraph(builder, { ledger });
 */
export function durableGraph<G extends DurableTarget>(graph: G, options: DurableOptions): G;
export function durableGraph<
  SD,
  S,
  U,
  N extends string,
  I extends StateDefinitionInit,
  O extends StateDefinitionInit,
  C extends StateDefinitionInit,
  R,
  IT,
  WT,
>(
  builder: StateGraph<SD, S, U, N, I, O, C, R, IT, WT>,
  options: DurableOptions,
): CompiledStateGraph<Flat<S>, Flat<U>, N, I, O, C, R, IT, WT>;
export function durableGraph(target: unknown, options: DurableOptions): unknown {
  checkOptions(options);
  const graph = hasMethod(target, "compile") ? target.compile() : target;
  if (!isCompiled(graph)) {
    throw new InvalidOptionError("Expected durableGraph's first argument to be a StateGraph or a compiled graph.");
  }
  const known = (graph as { [DURABLE]?: Ledger })[DURABLE];
  if (known === options.ledger) return graph;
  if (known !== undefined)
    throw new InvalidOptionError("This graph is durable on another ledger already. One graph, one ledger.");
  checkGraph(graph);
  return makeDurable(graph.withConfig({}), options.ledger, graph.checkpointer);
}

function checkOptions(options: DurableOptions): void {
  if (options?.ledger?.[LEDGER_PARTS] === undefined) {
    throw new InvalidOptionError("Expected `ledger` to be what openLedger() returned.");
  }
  for (const name of ["budget", "pins"] as const) {
    if (name in options) {
      throw new InvalidOptionError(
        `The option \`${name}\` is not supported by this version. Leave it out: a limit that is not kept is worse than none.`,
      );
    }
  }
  const names = (options.operations ?? []).map((operation) => operation.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new InvalidOptionError(`Two operations are called "${twice}". A name is the effect's identity.`);
}

function checkGraph(graph: Compiled): void {
  if (graph.checkpointer === false || graph.checkpointer === true) {
    throw new InvalidOptionError(
      `This graph was compiled with \`checkpointer: ${graph.checkpointer}\`, so nothing would be left after a crash. Compile it without that option.`,
    );
  }
  for (const [name, node] of Object.entries(graph.nodes)) {
    if (node.retryPolicy !== undefined && isCompiled(node.bound)) {
      throw new InvalidOptionError(
        `Node "${name}" is a compiled subgraph with a retryPolicy. LangGraph gives the steps below it new identities on a retry, so writes would happen twice. ` +
          "Put the retryPolicy on the nodes inside it, or wrap the call in a durableNode.",
      );
    }
  }
}

function isCompiled(value: unknown): value is Compiled {
  return typeof value === "object" && value !== null && "lg_is_pregel" in value && value.lg_is_pregel === true;
}

function hasMethod<N extends string>(value: unknown, name: N): value is Record<N, () => unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    name in value &&
    typeof (value as Record<N, unknown>)[name] === "function"
  );
}

/** The run-bound checkpointer of a state update, which LangGraph takes from the graph and not from the config. */
const lent = new AsyncLocalStorage<BaseCheckpointSaver>();

/** Replaces the ways into a copy of the graph. */
function makeDurable(graph: Compiled, ledger: Ledger, given: BaseCheckpointSaver | boolean | undefined): Compiled {
  const { saver } = ledger[LEDGER_PARTS];
  const { _streamIterator, bulkUpdateState, withConfig } = graph;
  let checkpointer: BaseCheckpointSaver = typeof given === "object" && given !== null ? given : saver;
  if (checkpointer !== saver) warnForeign(graph, checkpointer);
  const replace = (name: PropertyKey, value: unknown) =>
    Object.defineProperty(graph, name, { value, configurable: true, writable: true });

  Object.defineProperty(graph, "checkpointer", {
    enumerable: true,
    configurable: true,
    get: () => lent.getStore() ?? checkpointer,
    // Servers assign their own. One that lives in memory would lose the thread with the process, so ours stays.
    set: (assigned: unknown) => {
      if (isDurableSaver(assigned)) checkpointer = assigned;
    },
  });
  replace(DURABLE, ledger);
  replace("withConfig", (config: object) => makeDurable(withConfig.call(graph, config), ledger, checkpointer));
  replace("_streamIterator", (input: unknown, options?: RunOptions) =>
    runDurably(graph, ledger, options, (inner) => _streamIterator.call(graph, input, inner)),
  );
  replace("bulkUpdateState", (config: RunOptions, supersteps: unknown) =>
    updateDurably(graph, ledger, config, (inner) => bulkUpdateState.call(graph, inner, supersteps)),
  );
  return graph;
}

function isDurableSaver(value: unknown): value is BaseCheckpointSaver {
  if (typeof value !== "object" || value === null || !("getTuple" in value)) return false;
  return !/^(MemorySaver|InMemorySaver)$/.test(value.constructor.name);
}

function warnForeign(graph: Compiled, saver: BaseCheckpointSaver): void {
  process.emitWarning(
    `The graph "${graph.name ?? "LangGraph"}" keeps its own checkpointer (${saver.constructor.name}). Recorded steps are as safe, ` +
      "but its checkpoints have no guard against a second writer. Compile it without a checkpointer to use the ledger's.",
    { code: "LONGHAUL_FOREIGN_CHECKPOINTER" },
  );
}

function threadOf(graph: Compiled, options: RunOptions | undefined): string {
  const threadId: unknown = options?.configurable?.["thread_id"] ?? graph.config?.configurable?.["thread_id"];
  if (threadId === undefined) {
    throw new InvalidOptionError(
      'A durable graph needs a thread: invoke(input, { configurable: { thread_id: "…" } }).',
    );
  }
  return checkId("thread_id", threadId);
}

/** The run around this call, when it is on the same thread: a nested graph joins it. */
function joinedRun(options: RunOptions | undefined, threadId: string): boolean {
  const ambient = ambientConfig();
  const meter = meterIn(options?.callbacks, threadId) ?? meterIn(ambient?.callbacks, threadId);
  return meter !== undefined && meter.run.threadId === threadId;
}

async function* runDurably(
  graph: Compiled,
  ledger: Ledger,
  options: RunOptions | undefined,
  stream: (options: RunOptions) => AsyncGenerator<unknown>,
): AsyncGenerator<unknown> {
  const threadId = threadOf(graph, options);
  if (options !== undefined && joinedRun(options, threadId)) return yield* stream(options);
  const durability = durabilityOf(graph, options);
  const run = await Run.start(ledger, threadId);
  if ("busyUntil" in run) {
    const dueAt = run.busyUntil.toISOString();
    throw drained({
      kind: "busy",
      threadId,
      dueAt,
      message: `Thread "${threadId}" is being run by ${run.by} until ${dueAt} at least. Nothing was done.`,
    });
  }
  let failure: unknown;
  try {
    yield* stream({ ...bind(graph, ledger, run, options), durability });
    if (run.lost !== undefined) throw run.leave();
  } catch (error) {
    failure = run.lost === undefined ? error : run.leave();
    throw failure;
  } finally {
    await run.end(failure);
  }
}

/** Sync unless the caller says async: then a step waits for its checkpoints at the barrier. */
function durabilityOf(graph: Compiled, options: RunOptions | undefined): string {
  const config: RunOptions = { ...graph.config, ...options };
  if (config.durability === "exit" || config.checkpointDuring === false) {
    throw new InvalidOptionError(
      'A durable graph cannot run with `durability: "exit"`: a crash would leave nothing to go on from. Leave it out.',
    );
  }
  return config.durability ?? (config.checkpointDuring === true ? "async" : "sync");
}

/** The options of a run, with its checkpointer, its meter and its signal. */
function bind(graph: Compiled, ledger: Ledger, run: Run, options: RunOptions | undefined): RunOptions {
  const { saver } = ledger[LEDGER_PARTS];
  let checkpointer = graph.checkpointer as BaseCheckpointSaver;
  if (checkpointer === saver) {
    const bound = saver.forRun(run);
    run.saver = bound;
    checkpointer = bound;
  } else run.saver = foreignBarrier(checkpointer);
  const { checkpointDuring: _, ...rest } = options ?? {};
  return {
    ...rest,
    callbacks: withMeter(options?.callbacks, new Meter(run)),
    signal: options?.signal === undefined ? run.signal : AbortSignal.any([options.signal, run.signal]),
    configurable: { ...options?.configurable, __pregel_checkpointer: checkpointer },
  };
}

/** `updateState` and forks take the thread's lease: refused while a run is live. */
async function updateDurably(
  graph: Compiled,
  ledger: Ledger,
  config: RunOptions,
  update: (config: RunOptions) => Promise<RunnableConfig>,
): Promise<RunnableConfig> {
  const threadId = threadOf(graph, config);
  if (joinedRun(config, threadId)) return update(config);
  const run = await Run.start(ledger, threadId, "update");
  if ("busyUntil" in run) {
    throw new ThreadBusyError(
      `Thread "${threadId}" is being run by ${run.by}; its state cannot be changed until that run has ended.`,
      { threadId },
    );
  }
  const { saver } = ledger[LEDGER_PARTS];
  try {
    return graph.checkpointer === saver
      ? await lent.run(saver.forRun(run), () => update(config))
      : await update(config);
  } finally {
    await run.end();
  }
}
