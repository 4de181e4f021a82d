// Agents that hold a compiled graph instead of being one: LangChain's createAgent, and what is built on it. Made durable they
// stay agents: it is their graph that runs durably, also where a server takes the graph out of them.
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { type Compiled, type DurableTarget, isCompiled } from "./compiled.js";

/** What an agent was made with, as far as it is read here. */
export interface AgentOptions {
  readonly tools?: readonly unknown[] | undefined;
  readonly middleware?: readonly AgentMiddlewareLike[] | undefined;
}

export interface AgentMiddlewareLike {
  readonly name: string;
  readonly tools?: readonly unknown[] | undefined;
  readonly [AGENT_PARTS]?: AgentParts;
}

export interface Agent extends DurableTarget {
  readonly graph: Compiled;
  readonly options: AgentOptions;
  store?: BaseStore | undefined;
  withConfig(config: object): Agent;
}

/** Under this name the middleware `durableAgent` tells durableGraph what it declares. */
export const AGENT_PARTS = Symbol.for("langgraph-longhaul.agentParts");

export interface AgentParts {
  /** The recorded tools of the agent. @throws InvalidOptionError for one that nothing declares. */
  recordedTools(options: AgentOptions): readonly StructuredToolInterface[];
}

export function isAgent(target: unknown): target is Agent {
  if (typeof target !== "object" || target === null || "lg_is_pregel" in target) return false;
  return "options" in target && "withConfig" in target && "graph" in target && isCompiled(target.graph);
}

/** The graph of an agent; every other graph is its own. */
export function graphOf(target: object): object {
  return isAgent(target) ? target.graph : target;
}

/** The tools that its middleware declares as recorded steps. */
export function recordedToolsOf({ options }: Agent): readonly StructuredToolInterface[] {
  const parts = (options.middleware ?? []).map((middleware) => middleware[AGENT_PARTS]);
  return parts.flatMap((part) => part?.recordedTools(options) ?? []);
}
