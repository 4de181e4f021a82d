// A scope that finishes with what it has: the node whose call was refused ends without an update and without its edges, and
// those beside it go on. What is left of the graph then is what could still be done.
import type { RunnableConfig } from "@langchain/core/runnables";
import type { WrapUp } from "../../core/budget.js";
import { InvalidOptionError } from "../../core/errors.js";
import type { Compiled } from "../compiled.js";
import { derived } from "../guardNodes.js";
import { scopeEndedBy } from "../leave.js";
import { purseOf } from "../runtime.js";

type GraphNode = Compiled["nodes"][string];
interface Task {
  invoke(input: unknown, config?: RunnableConfig): Promise<unknown>;
}

/**
 * Has the nodes of the graph end at the limits of the scope that it is run in; then the wrap-up comes, if there is one.
 * LangGraph's own edges are writes that follow the node's code, so what is wrapped is the task that holds both.
 *
 * @throws InvalidOptionError when the graph has no node of the wrap-up's name.
 */
export function endAtLimits(graph: Compiled, wrapUp?: WrapUp): Compiled {
  if (wrapUp !== undefined && !(channelTo(wrapUp.node) in graph.channels)) {
    const names = Object.keys(graph.nodes).filter((name) => !name.startsWith("__"));
    throw new InvalidOptionError(
      `\`budget.wrapUp.node\` is "${wrapUp.node}", but the graph has no such node. It has: ${names.join(", ")}.`,
    );
  }
  const ending = Object.entries(graph.nodes).map(([name, node]) => [name, endingNode(node, wrapUp)] as const);
  graph.nodes = Object.fromEntries(ending);
  return graph;
}

function endingNode(node: GraphNode, wrapUp: WrapUp | undefined): GraphNode {
  const getNode = () => {
    const task = node.getNode();
    return task === undefined ? undefined : derived(task, { invoke: endingTask(task, wrapUp) });
  };
  return derived(node, { getNode });
}

function endingTask(task: Task, wrapUp: WrapUp | undefined): Task["invoke"] {
  return async (input, config) => {
    try {
      return await task.invoke(input, config);
    } catch (error) {
      const scope = scopeEndedBy(error);
      if (scope === undefined || scope !== purseOf(config)?.scope) throw error;
      if (wrapUp !== undefined) send(config, channelTo(wrapUp.node));
      return undefined;
    }
  };
}

/** The channel by which LangGraph starts a node of a StateGraph. */
function channelTo(node: string): string {
  return `branch:to:${node}`;
}

function send(config: RunnableConfig | undefined, channel: string): void {
  const write: unknown = config?.configurable?.["__pregel_send"];
  if (typeof write === "function") write([[channel, null]]);
}
