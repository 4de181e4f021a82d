// LangGraph numbers the graphs that a task's code invokes in the order of the calls, and finds their checkpoints again by the
// number. A part of a node that may be left out, or run beside others, gets numbers of its own: on the next attempt the order
// may be another one, and a graph would go on from the checkpoint of another.
import type { RunnableConfig } from "@langchain/core/runnables";
import { sha256 } from "../core/key.js";

/** Above every number that LangGraph itself will count to. */
const FIRST = 1e13;
const PER_PART = 1000;

/** The config with numbers of the part's own; everything else in LangGraph's scratchpad is shared with the node. */
export function withOwnSubgraphNumbers(config: RunnableConfig, label: string): RunnableConfig {
  const scratchpad: unknown = config.configurable?.["__pregel_scratchpad"];
  if (typeof scratchpad !== "object" || scratchpad === null) return config;
  let counter = FIRST + Number.parseInt(sha256(label).slice(0, 8), 16) * PER_PART;
  const own = new Proxy(scratchpad, {
    get: (target, name) => (name === "subgraphCounter" ? counter : Reflect.get(target, name)),
    set: (target, name, value) => {
      if (name !== "subgraphCounter") return Reflect.set(target, name, value);
      counter = Number(value);
      return true;
    },
  });
  return { ...config, configurable: { ...config.configurable, __pregel_scratchpad: own } };
}

/** Whether LangGraph counted it, over the attempts at a task, and no part of a node. */
export function isCountedByTask(number: number): boolean {
  return number < FIRST;
}
