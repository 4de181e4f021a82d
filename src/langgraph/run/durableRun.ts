// A run of a durable graph, and a change of its state from outside: both hold the thread's lease from before the first
// node to the end, write checkpoints in its name, and carry the meter by which everything below finds the ledger.
import { AsyncLocalStorage } from "node:async_hooks";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { ThreadBudget } from "../../core/budget.js";
import { InvalidOptionError, ThreadBusyError } from "../../core/errors.js";
import { checkId } from "../../core/key.js";
import { graphOf } from "../agent.js";
import { answerApprovals, type ResumeAs } from "../approval/approvalResume.js";
import { RunPurse } from "../budget/runPurse.js";
import { type Compiled, DURABLE, type RunOptions } from "../compiled.js";
import { LEDGER_PARTS, type Ledger } from "../ledger.js";
import { METER, Meter, meterIn, metersIn, withMeter } from "../meter.js";
import { ambientConfig, purseOf, scopeAt } from "../runtime.js";
import { RunSpan } from "../span/runSpan.js";
import { refuseGoneTools } from "../version/goneTools.js";
import { refuseForkInDoubt } from "./branch.js";
import { foreignKnowledge } from "./foreignSaver.js";
import type { GraphSettings } from "./graphSettings.js";
import { orderedInput } from "./orderedInput.js";
import { Run } from "./run.js";
import { isNewInput, keepNamed, refuseNothingToGoOn, refuseResumeOffHead, withoutStrayResume } from "./runInput.js";
import { isServed, takeThread } from "./takeThread.js";

/** What is to be done with what an update of state came to, while the thread is still held. */
export const afterUpdate = new AsyncLocalStorage<(updated: RunnableConfig) => Promise<void>>();

/** The run-bound checkpointer of a state update, which LangGraph takes from the graph and not from the config. */
const lent = new AsyncLocalStorage<BaseCheckpointSaver>();

export function lentForUpdate(): BaseCheckpointSaver | undefined {
  return lent.getStore();
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
  const configurable = { ...options?.configurable, thread_id: threadId };
  const candidates = [
    { ...options, configurable },
    { ...ambientConfig(), configurable },
  ];
  return candidates.some((config) => {
    const run = meterIn(config)?.run;
    return run !== undefined && run.threadId === threadId && !run.ended;
  });
}

/** The runs, on other threads, that this one is made in: the innermost first. */
function runsAround(options: RunOptions | undefined): readonly Run[] {
  const runs = [...metersIn(options), ...metersIn(ambientConfig())].map(({ run }) => run).filter(({ ended }) => !ended);
  return [...new Set(runs)].reverse();
}

/** What `durableGraph` was told. */
export interface RunSettings extends GraphSettings {
  readonly ledger: Ledger;
  readonly budget: ThreadBudget | undefined;
  readonly name: string | undefined;
  readonly resumeAs: ResumeAs | undefined;
  readonly ttlMs: number | undefined;
}

/** The name under which a worker finds the graph again. A LangGraph server knows it by that of langgraph.json. */
function graphName(graph: Compiled, { name }: RunSettings, options: RunOptions): string {
  const served: unknown = options.configurable?.["graph_id"];
  return name ?? (isServed(options) && typeof served === "string" ? served : nameOf(graph));
}

function nameOf(graph: Compiled): string {
  return graph.name ?? "LangGraph";
}

/** What a durable graph is called where it does not run on a server; undefined for what is no durable graph. */
export function durableName(graph: object): string | undefined {
  const settings = settingsOf(graph);
  return settings === undefined ? undefined : (settings.name ?? nameOf(graphOf(graph) as Compiled));
}

/** The ledger that a durable graph is on. */
export function ledgerOf(graph: object): Ledger | undefined {
  return settingsOf(graph)?.ledger;
}

/** What `durableGraph` was told of a graph, or an agent; undefined for what is not durable. */
export function settingsOf(graph: object): RunSettings | undefined {
  return (graphOf(graph) as { [DURABLE]?: RunSettings })[DURABLE];
}

type Stream = (input: unknown, options: RunOptions) => AsyncGenerator<unknown>;

/** Runs the graph under the thread's lease, or joins the run around it. */
export async function* runDurably(
  graph: Compiled,
  settings: RunSettings,
  input: unknown,
  options: RunOptions | undefined,
  stream: Stream,
): AsyncGenerator<unknown> {
  const threadId = threadOf(graph, options);
  if (options !== undefined && joinedRun(options, threadId) && settings.budget !== undefined) {
    throw new InvalidOptionError(
      `A durable graph with a budget is run within another on the same thread "${threadId}", whose budget it has then. ` +
        "Leave its `budget` out and wrap it: budgetedSubgraph(graph, { budget }), or budgetScope(…) around the call.",
    );
  }
  if (options !== undefined && joinedRun(options, threadId)) return yield* stream(input, options);
  const durability = durabilityOf(graph, options);
  const outer = runsAround(options);
  const span = new RunSpan(graph.name ?? "LangGraph", threadId, outer.at(0)?.span?.contextAt(scopeAt(options)));
  yield* span.around(holdThread(graph, settings, input, { ...options, durability }, { threadId, outer, span, stream }));
}

/** A run that is no part of another one on its thread. */
interface OwnRun {
  readonly threadId: string;
  /** The runs that it is made in, the innermost first. */
  readonly outer: readonly Run[];
  readonly span: RunSpan;
  readonly stream: Stream;
}

async function* holdThread(
  graph: Compiled,
  settings: RunSettings,
  asked: unknown,
  options: RunOptions,
  { threadId, outer, span, stream }: OwnRun,
): AsyncGenerator<unknown> {
  const { ledger, resumeAs } = settings;
  if (isServed(options)) ledger[LEDGER_PARTS].servedHere();
  const { approvals } = await ledger[LEDGER_PARTS].open();
  const input = await answerApprovals({ graph, approvals, threadId, resumeAs }, asked, options);
  const addressed = options.configurable?.["checkpoint_id"] !== undefined;
  const goesOn = addressed || !isNewInput(input);
  const of = { graph: graphName(graph, settings, options), outer, goesOn, addressed, ttlMs: settings.ttlMs };
  const run = await takeThread(ledger, threadId, options, of);
  run.settings = settings;
  run.goesOn = of.goesOn;
  run.span = span;
  let failure: unknown;
  try {
    for (const around of outer) around.innerThreads.add(threadId);
    await refuseGoneTools(run);
    const around = outer.length === 0 ? undefined : (purseOf(options) ?? outer[0]?.purse);
    const given = await orderedInput(graph, run, input, options);
    run.purse = await RunPurse.open(run, settings.budget, around, isNewInput(given));
    run.wrapUpNode = settings.budget?.wrapUp?.node;
    await watchDeadline(run);
    await keepNamed(run, given);
    await refuseNothingToGoOn(graph, given, options, threadId);
    await refuseResumeOffHead(graph, given, options, threadId);
    if (graph.checkpointer === ledger[LEDGER_PARTS].saver) await refuseForkInDoubt(graph, run, options);
    const taken = await withoutStrayResume(graph, given, options, threadId);
    // The ledger's checkpointer does it with the checkpoint itself.
    if (isNewInput(taken) && graph.checkpointer !== ledger[LEDGER_PARTS].saver) await run.approvals.leaveAll(threadId);
    yield* stream(taken, bind(graph, ledger, run, options, outer));
    if (run.lost !== undefined) throw run.leave();
    if (run.stoppedBy !== undefined) throw run.stoppedBy;
  } catch (error) {
    failure = run.lost === undefined ? (run.stoppedBy ?? error) : run.leave();
    throw failure;
  } finally {
    for (const around of outer) around.innerThreads.delete(threadId);
    span.endsAs = run.interrupted ? "waiting" : "done";
    await run.end(failure);
  }
}

/** What is under way is told when the thread's deadline passes. */
async function watchDeadline(run: Run): Promise<void> {
  const { purse } = run;
  if (purse?.deadline === undefined) return;
  await run.watchDeadline(() => {
    // A ledger that cannot be reached ends the run by its lease.
    purse.endAtDeadline().catch(() => undefined);
  });
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
function bind(
  graph: Compiled,
  ledger: Ledger,
  run: Run,
  options: RunOptions | undefined,
  outer: readonly Run[],
): RunOptions {
  const { saver } = ledger[LEDGER_PARTS];
  let checkpointer = graph.checkpointer as BaseCheckpointSaver;
  if (checkpointer === saver) {
    const bound = saver.forRun(run);
    run.saver = bound;
    checkpointer = bound;
  } else {
    run.saver = foreignKnowledge(checkpointer);
    run.unguarded = true;
  }
  // A nested graph is handed its outer run's, which would stop there.
  if (options?.control !== undefined && outer.every(({ control }) => control !== options.control))
    run.adopt(options.control);
  run.addressed = options?.configurable?.["checkpoint_id"] !== undefined;
  const { checkpointDuring: _, ...rest } = options ?? {};
  const meter = new Meter(run);
  return {
    ...rest,
    // What a client says here would otherwise pass for the thread that the run has.
    metadata: { ...options?.metadata, thread_id: run.threadId },
    callbacks: withMeter(options?.callbacks, meter),
    signal: anySignal([options?.signal, run.signal, ...outer.map(({ signal }) => signal)]),
    control: run.control,
    configurable: { ...withoutForged(options?.configurable), __pregel_checkpointer: checkpointer, [METER]: meter },
  };
}

function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/**
 * LangGraph's own entries in `configurable` are live objects of the run around a nested graph. From a client they can
 * only be forged: a top-level run starts without them.
 */
function withoutForged(configurable: RunnableConfig["configurable"]): RunnableConfig["configurable"] {
  const nested = ambientConfig()?.configurable?.["__pregel_read"];
  if (configurable === undefined || (nested !== undefined && nested === configurable["__pregel_read"]))
    return configurable;
  const entries = Object.entries(configurable);
  return Object.fromEntries(
    entries.filter(([name]) => !name.startsWith("__pregel_") || name === "__pregel_strict_resume"),
  );
}

/** `updateState` and forks take the thread's lease: refused while a run is live. */
export async function updateDurably(
  graph: Compiled,
  ledger: Ledger,
  config: RunOptions,
  values: unknown,
  update: (config: RunOptions) => Promise<RunnableConfig>,
): Promise<RunnableConfig> {
  const threadId = threadOf(graph, config);
  if (joinedRun(config, threadId)) return update(config);
  const addressed = config.configurable?.["checkpoint_id"] !== undefined;
  const run = await Run.start(ledger, threadId, "update", { goesOn: addressed, addressed });
  if ("busyUntil" in run) {
    throw new ThreadBusyError(
      `Thread "${threadId}" is being run by ${run.by}; its state cannot be changed until that run has ended.`,
      { threadId },
    );
  }
  const { saver } = ledger[LEDGER_PARTS];
  try {
    if (graph.checkpointer === saver) await refuseForkInDoubt(graph, run, config);
    await keepNamed(run, values);
    const updated =
      graph.checkpointer === saver
        ? await lent.run(saver.forRun(run), () => update(config))
        : await updateForeign(run, () => update(config));
    await afterUpdate.getStore()?.(updated);
    return updated;
  } finally {
    await run.end();
  }
}

/** The ledger's checkpointer closes what an update leaves behind with the checkpoint itself. */
async function updateForeign(run: Run, update: () => Promise<RunnableConfig>): Promise<RunnableConfig> {
  const updated = await update();
  await run.approvals.leaveAll(run.threadId);
  return updated;
}
