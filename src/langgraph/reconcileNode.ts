// `reconcileNode`: settles all of a thread's writes of unknown outcome, by lookup first, then by a person.
import { InvalidOptionError } from "../core/errors.js";
import { questionAbout } from "../core/reconcile.js";
import { type SettledStep, settleThread } from "../core/settleThread.js";
import type { DurableNode } from "./durableNode.js";
import { paused } from "./leave.js";
import { hostAt, locate } from "./runtime.js";

/**
 * A node that settles every write of the thread whose outcome is not known. It asks the lookup that is registered under
 * the write's name (`durableGraph(graph, { operations, tools })`); for what is left it pauses with one interrupt for each
 * write, which names the step, its key, its times and the question. Stands at START, in a loop, or before a decision.
 *
 * @example
 * .addNode("reconcile", reconcileNode()).addEdge(START, "reconcile").addEdge("reconcile", "plan")
 */
export function reconcileNode<Update = Record<string, never>>(
  options: { settled?: (steps: readonly SettledStep[]) => Update } = {},
): DurableNode<unknown, Update> {
  if (options.settled !== undefined && typeof options.settled !== "function") {
    throw new InvalidOptionError("Expected `settled` of reconcileNode to be a function of the settled steps.");
  }
  return async (_state, config) => {
    const place = locate(config, "A reconcileNode");
    const { effects } = place.run.settings;
    const { settled, open } = await settleThread(hostAt(place), effects);
    if (open.length > 0) {
      const hasLookup = (name: string) => effects.get(name)?.lookup !== undefined;
      throw paused(open.map((record) => ({ record, question: questionAbout(record, hasLookup(record.name)) })));
    }
    return options.settled === undefined ? ({} as Update) : options.settled(settled);
  };
}
