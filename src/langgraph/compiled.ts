// What of LangGraph's compiled graphs this package uses or replaces.
import type { RunnableConfig } from "@langchain/core/runnables";
import type { RunControl } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

/** What compiled graphs and agents built on them have in common. */
export interface DurableTarget {
  checkpointer?: BaseCheckpointSaver | boolean | undefined;
  withConfig(config: { callbacks?: RunnableConfig["callbacks"] }): unknown;
}

export interface CompiledNode {
  retryPolicy?: unknown;
  bound?: unknown;
  subgraphs?: unknown[];
  /** The node's code and its edges, as one task; undefined for a node without either. */
  getNode(): { invoke(input: unknown, config?: RunnableConfig): Promise<unknown> } | undefined;
}

/** The members of a compiled graph that are replaced. Their types are LangGraph's to change, so they stay loose here. */
export interface Compiled extends DurableTarget {
  lg_is_pregel: true;
  name?: string;
  config?: RunnableConfig;
  nodes: Record<string, CompiledNode>;
  channels: Record<string, unknown>;
  _streamIterator(input: unknown, options?: RunOptions): AsyncGenerator<unknown>;
  bulkUpdateState(config: RunOptions, supersteps: unknown): Promise<RunnableConfig>;
  withConfig(config: object): Compiled;
}
export type RunOptions = RunnableConfig & { durability?: string; checkpointDuring?: boolean; control?: RunControl };

export function isCompiled(value: unknown): value is Compiled {
  if (typeof value !== "object" || value === null || !("lg_is_pregel" in value) || value.lg_is_pregel !== true)
    return false;
  // A graph on another server (RemoteGraph) has no nodes here.
  return "nodes" in value && typeof value.nodes === "object" && value.nodes !== null;
}

/** Where a durable graph keeps what it was told. */
export const DURABLE = Symbol.for("langgraph-longhaul.durable");
