// Plain nodes of a durable graph leave as durable ones do: a pause that their code caught does not get past them, and no
// step of theirs is left open. Done to copies of the graph's nodes, and to those of the subgraphs in it.
import type { RunnableConfig } from "@langchain/core/runnables";
import { isDurableNode } from "./durableNode.js";
import { type Compiled, DURABLE } from "./durableRun.js";
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
  const func: unknown = (bound as { func?: unknown } | undefined)?.func;
  if (typeof func === "function") {
    return isDurableNode(func) ? node : derived(node, { bound: guardRunnable(bound as Invokable) });
  }
  if (!isBareGraph(bound)) return node;
  const inner = guardNodes(bound.withConfig({}));
  const subgraphs = node.subgraphs?.map((subgraph) => (subgraph === bound ? inner : subgraph));
  return derived(node, { bound: inner, ...(subgraphs === undefined ? {} : { subgraphs }) });
}

function isBareGraph(bound: unknown): bound is Compiled {
  return typeof bound === "object" && bound !== null && "lg_is_pregel" in bound && !(DURABLE in bound);
}

function guardRunnable(runnable: Invokable): Invokable {
  const invoke = async (input: unknown, config?: RunnableConfig): Promise<unknown> => {
    let update: unknown;
    try {
      update = await runnable.invoke(input, config);
    } catch (error) {
      await scopeAt(config)?.close(true);
      throw error;
    }
    await scopeAt(config)?.close(false);
    return update;
  };
  return derived(runnable, { invoke });
}

/** The same object but for these members. */
function derived<T extends object>(of: T, members: object): T {
  return Object.assign(Object.create(of) as T, members);
}
