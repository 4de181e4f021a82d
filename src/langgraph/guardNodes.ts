// Plain nodes of a durable graph leave as durable ones do: a pause that their code caught does not get past them, and no
// step of theirs is left open. Done to copies of the graph's nodes, and to those of the subgraphs in it.
import { type RunnableConfig, RunnablePassthrough } from "@langchain/core/runnables";
import { isLonghaulError } from "../core/errors.js";
import { type Compiled, DURABLE } from "./compiled.js";
import { isDurableNode } from "./durableNode.js";
import { scopeAt } from "./runtime.js";

type GraphNode = Compiled["nodes"][string];
interface Invokable {
  invoke(input: unknown, config?: RunnableConfig): Promise<unknown>;
}

/** Replaces the graph's nodes by guarded copies. */
export function guardNodes(graph: Compiled): Compiled {
  const guarded = Object.entries(graph.nodes).map(([name, node]) => [name, guardNode(node)] as const);
  graph.nodes = Object.fromEntries(guarded);
  return graph;
}

function guardNode(node: GraphNode): GraphNode {
  const { bound } = node;
  if (isDurableNode((bound as { func?: unknown } | undefined)?.func)) return node;
  if (!isBareGraph(bound)) return isGuardable(bound) ? derived(node, { bound: guardRunnable(bound) }) : node;
  const inner = guardNodes(bound.withConfig({}));
  const subgraphs = node.subgraphs?.map((subgraph) => (subgraph === bound ? inner : subgraph));
  return derived(node, { bound: inner, ...(subgraphs === undefined ? {} : { subgraphs }) });
}

/** Functions, sequences, bindings, fallbacks. A graph guards its own nodes; a bare passthrough is LangGraph's own. */
function isGuardable(bound: unknown): bound is Invokable {
  if (typeof bound !== "object" || bound === null || "lg_is_pregel" in bound) return false;
  return "invoke" in bound && typeof bound.invoke === "function" && !(bound instanceof RunnablePassthrough);
}

/** A compiled graph that is no durable one. A graph on another server has no nodes here. */
function isBareGraph(bound: unknown): bound is Compiled {
  if (typeof bound !== "object" || bound === null || DURABLE in bound) return false;
  return "lg_is_pregel" in bound && "nodes" in bound && typeof bound.nodes === "object" && bound.nodes !== null;
}

function guardRunnable(runnable: Invokable): Invokable {
  const invoke = async (input: unknown, config?: RunnableConfig): Promise<unknown> => {
    let update: unknown;
    try {
      scopeAt(config)?.enter();
      update = await runnable.invoke(input, config);
    } catch (error) {
      await scopeAt(config)?.close(true, false);
      throw withoutWrapping(error);
    }
    await scopeAt(config)?.close(false, false);
    return update;
  };
  return derived(runnable, { invoke });
}

/** LangChain's middleware wraps an error of ours in one of its own, without its code and status. */
function withoutWrapping(error: unknown): unknown {
  let inner = error;
  while ((inner as { "~brand"?: unknown } | undefined)?.["~brand"] === "MiddlewareError")
    inner = (inner as Error).cause;
  return isLonghaulError(inner) ? inner : error;
}

/** The same object but for these members. */
export function derived<T extends object>(of: T, members: object): T {
  return Object.assign(Object.create(of) as T, members);
}
