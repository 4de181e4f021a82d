// `durableGraph`: graph in, same graph out. What changes: one run at a time on a thread, checkpoints that cannot be
// overtaken, and a ledger for everything below. It works on a copy of the compiled graph, whose four ways in
// (run, update, copy, checkpointer) are replaced; everything else is LangGraph's own.
import type { CompiledStateGraph, StateDefinitionInit, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { ThreadBudget } from "../core/budget.js";
import { checkThreadBudget } from "../core/budgetOptions.js";
import type { Effects } from "../core/effect.js";
import { InvalidOptionError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { takesFrom, warnForeign } from "./advice/checkpointerInUse.js";
import { warnOfRetriedNodes } from "./advice/retryLayers.js";
import { DecidingNodes } from "./advice/temperature.js";
import { type Agent, isAgent, recordedToolsOf } from "./agent.js";
import type { ResumeAs } from "./approval/approvalResume.js";
import { endAtLimits } from "./budget/endAtLimits.js";
import { type Compiled, DURABLE, type DurableTarget, isCompiled, type RunOptions } from "./compiled.js";
import { guardNodes } from "./guardNodes.js";
import { LEDGER_PARTS, type Ledger } from "./ledger.js";
import type { AnyOperation } from "./operation.js";
import { lentForUpdate, type RunSettings, runDurably, updateDurably } from "./run/durableRun.js";
import { olderOf, type ToolRegistry } from "./toolRegistry.js";
import { effectsOf } from "./version/effects.js";

export interface DurableOptions {
  readonly ledger: Ledger;
  /** Declared effects, so that other processes can look them up. Names must be unique. */
  readonly operations?: readonly AnyOperation[];
  readonly tools?: ToolRegistry;
  /**
   * What a fork does with a write that the branch it left has done with the same input: ask a person, who reuses the
   * result or has it done again, or just do it. Edits of state always ask. @default "ask"
   */
  readonly onFork?: "ask" | "run";
  /**
   * What a thread of this graph may spend in all, over all its runs and restarts; durable graphs that it runs on threads of
   * their own spend from it too. Limits are kept in the database: raise one with `raiseBudget` or `longhaul budget raise`.
   * @default no limit
   */
  readonly budget?: ThreadBudget;
  /**
   * What its threads are known by to workers of several graphs. Keep it when the code changes. @default the name that
   * the graph was compiled with; on a LangGraph server the one in langgraph.json
   */
  readonly name?: string;
  /**
   * Who it is that resumes a thread with an answer to a request for approval, from the run's `configurable`. **Clients can put
   * anything there**: read only what your server sets over it, such as `langgraph_auth_user` where `auth` is configured in
   * langgraph.json. Undefined, and what it gives no user for, is anonymous: it answers requests without `approvers`, and in
   * production none.
   *
   * @example
   * resumeAs: ({ langgraph_auth_user: user }) => user && { by: user.identity, roles: user.roles }
   */
  readonly resumeAs?: ResumeAs;
  /**
   * How long a thread is kept after its end (done or cancelled), counted from its last activity, in milliseconds. Then whoever
   * sweeps deletes it, as `deleteThread` does. Threads that wait, are due, have failed or have a write in doubt are kept. Each
   * run of a thread sets it anew. @default threads are kept until somebody deletes them
   */
  readonly ttlMs?: number;
  /**
   * What a thread is held to besides its tools, by name: the version of a prompt, a model route, a policy, a hash of the code.
   * A thread that meets another value waits for a person before its next step, unless both are semantic versions and the
   * change is a compatible one.
   *
   * @example
   * pins: { prompt: "2.1.0", model: "gpt-4.1-mini", policy: sha256(policyText) }
   */
  readonly pins?: Readonly<Record<string, string>>;
  /**
   * Writes that this build calls otherwise than the one before it did: the old name, and the new one. A thread that made one under
   * the old name does not make it again. Without this a person is asked. Declare a rename until no thread sleeps from before it.
   *
   * @example
   * renames: { pay: "charge" }
   */
  readonly renames?: Readonly<Record<string, string>>;
}

type Flat<T> = { [K in keyof T]: T[K] } & {};
/**
 * Makes a graph durable: the same graph comes out, with the same type. Give it a compiled graph, a builder to be
 * compiled, an `entrypoint` of the functional API, or an agent of LangChain's `createAgent`, whose model and tool calls are
 * recorded with the middleware `durableAgent` of `langgraph-longhaul/langchain`.
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
  if (isAgent(target)) return durableAgentOf(target, options);
  const graph = hasMethod(target, "compile") ? target.compile() : target;
  if (!isCompiled(graph)) {
    throw new InvalidOptionError(
      "Expected durableGraph's first argument to be a StateGraph, a compiled graph, or an agent of createAgent.",
    );
  }
  if (isDurableOn(options.ledger, graph)) return graph;
  return durableCopy(graph.withConfig({}), graph, options, effectsOf(options.operations, options.tools));
}

/** A copy of the agent, on a durable graph of its own. */
function durableAgentOf(agent: Agent, options: DurableOptions): Agent {
  if (isDurableOn(options.ledger, agent.graph)) return agent;
  const effects = effectsOf(options.operations, options.tools, recordedToolsOf(agent));
  const copy = agent.withConfig({});
  if (agent.store !== undefined) copy.store = agent.store;
  durableCopy(copy.graph, agent.graph, options, effects);
  const { withConfig } = copy;
  const value = (config: object) => durableAgentOf(withConfig.call(copy, config), options);
  return Object.defineProperty(copy, "withConfig", { value, configurable: true, writable: true });
}

function isDurableOn(ledger: Ledger, graph: Compiled): boolean {
  const known = (graph as { [DURABLE]?: RunSettings })[DURABLE];
  if (known === undefined || known.ledger === ledger) return known !== undefined;
  throw new InvalidOptionError("This graph is durable on another ledger already. One graph, one ledger.");
}

/** Makes `copy`, which is nobody else's, durable. */
function durableCopy(copy: Compiled, given: Compiled, options: DurableOptions, effects: Effects): Compiled {
  checkGraph(given);
  warnOfRetriedNodes(given);
  const { ledger, onFork = "ask", budget, name, resumeAs, ttlMs, tools, pins = {}, renames = {} } = options;
  const olderTools = tools === undefined ? new Map<string, object>() : olderOf(tools);
  const settings = {
    ledger,
    onFork,
    effects,
    budget,
    name,
    resumeAs,
    ttlMs,
    olderTools,
    pins: { ...pins },
    renames: { ...renames },
    deciding: new DecidingNodes(given),
  };
  const guarded = guardNodes(copy);
  const ending = budget?.wrapUp === undefined ? guarded : endAtLimits(guarded, budget.wrapUp);
  return makeDurable(ending, settings, given.checkpointer);
}

function checkOptions(options: DurableOptions): void {
  if (options?.ledger?.[LEDGER_PARTS] === undefined) {
    throw new InvalidOptionError("Expected `ledger` to be what openLedger() returned.");
  }
  knownOptions("durableGraph", options, [
    "ledger",
    "operations",
    "tools",
    "onFork",
    "budget",
    "name",
    "resumeAs",
    "ttlMs",
    "pins",
    "renames",
  ]);
  checkPins(options.pins);
  checkRenames(options.renames);
  if (options.ttlMs !== undefined && !(Number.isSafeInteger(options.ttlMs) && options.ttlMs > 0))
    throw new InvalidOptionError(`Expected \`ttlMs\` to be a positive number of milliseconds, got ${options.ttlMs}.`);
  if (options.resumeAs !== undefined && typeof options.resumeAs !== "function")
    throw new InvalidOptionError("Expected `resumeAs` to be a function of the run's configurable.");
  if (options.name !== undefined) checkId("name", options.name);
  if (options.budget !== undefined) checkThreadBudget(options.budget);
  if (options.onFork !== undefined && options.onFork !== "ask" && options.onFork !== "run") {
    throw new InvalidOptionError(`Expected \`onFork\` to be "ask" or "run", got ${JSON.stringify(options.onFork)}.`);
  }
}

function checkPins(pins: unknown): void {
  if (pins === undefined) return;
  const isText = (value: unknown) => typeof value === "string" && value !== "" && value.length <= 500;
  if (typeof pins === "object" && pins !== null && !Array.isArray(pins) && Object.values(pins).every(isText)) return;
  throw new InvalidOptionError(
    'Expected `pins` to be texts of at most 500 characters by name, such as { prompt: "1.2.0", model: "gpt-4.1-mini" }.',
  );
}

function checkRenames(renames: unknown): void {
  if (renames === undefined) return;
  const isPlain = typeof renames === "object" && renames !== null && !Array.isArray(renames);
  const names: unknown[] = isPlain ? Object.values(renames) : [undefined];
  if (!names.every((name) => typeof name === "string" && name !== "") || new Set(names).size < names.length) {
    throw new InvalidOptionError(
      'Expected `renames` to be new names of steps by their old ones, each given once, such as { pay: "charge" }.',
    );
  }
}

function checkGraph(graph: Compiled): void {
  if (graph.checkpointer === false || graph.checkpointer === true) {
    throw new InvalidOptionError(
      `This graph was compiled with \`checkpointer: ${graph.checkpointer}\`, so nothing would be left after a crash. Compile it without that option.`,
    );
  }
  refuseRetriedSubgraphs(graph);
}

/** Below a subgraph that a retryPolicy enters again, LangGraph gives everything a new identity (G4). */
function refuseRetriedSubgraphs(graph: Compiled, path = ""): void {
  for (const [name, node] of Object.entries(graph.nodes)) {
    const inner = [node.bound, ...(node.subgraphs ?? [])].filter(isCompiled);
    if (node.retryPolicy !== undefined && inner.length > 0) {
      throw new InvalidOptionError(
        `Node "${path}${name}" is, or holds, a compiled subgraph and has a retryPolicy. LangGraph gives the steps below it new identities on a retry, so writes would happen twice. ` +
          "Put the retryPolicy on the nodes inside it, or wrap the call in a durableNode.",
      );
    }
    for (const subgraph of new Set(inner)) refuseRetriedSubgraphs(subgraph, `${path}${name}/`);
  }
}

function hasMethod<N extends string>(value: unknown, name: N): value is Record<N, () => unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    name in value &&
    typeof (value as Record<N, unknown>)[name] === "function"
  );
}

/** Replaces the ways into a copy of the graph. */
function makeDurable(
  graph: Compiled,
  settings: RunSettings,
  given: BaseCheckpointSaver | boolean | undefined,
): Compiled {
  const { ledger } = settings;
  const { saver } = ledger[LEDGER_PARTS];
  const { _streamIterator, bulkUpdateState, withConfig } = graph;
  let checkpointer: BaseCheckpointSaver = typeof given === "object" && given !== null ? given : saver;
  if (checkpointer !== saver) warnForeign(graph, checkpointer);
  const replace = (name: PropertyKey, value: unknown) =>
    Object.defineProperty(graph, name, { value, configurable: true, writable: true });

  Object.defineProperty(graph, "checkpointer", {
    enumerable: true,
    configurable: true,
    get: () => lentForUpdate() ?? checkpointer,
    // Servers assign their own.
    set: (assigned: unknown) => {
      if (assigned === saver || (assigned !== checkpointer && takesFrom(assigned)))
        checkpointer = assigned as BaseCheckpointSaver;
    },
  });
  replace(DURABLE, settings);
  replace("withConfig", (config: object) => makeDurable(withConfig.call(graph, config), settings, checkpointer));
  replace("_streamIterator", (input: unknown, options?: RunOptions) =>
    runDurably(graph, settings, input, options, (asked, inner) => _streamIterator.call(graph, asked, inner)),
  );
  replace("bulkUpdateState", (config: RunOptions, supersteps: unknown) =>
    updateDurably(graph, ledger, config, supersteps, (inner) => bulkUpdateState.call(graph, inner, supersteps)),
  );
  return graph;
}
