// `compensateNode`: undoes what the thread did, newest first.
import { InvalidOptionError } from "../core/errors.js";
import { checkOnFailure, compensateThread, type SagaOptions, type SagaReport } from "../core/saga.js";
import type { DurableNode } from "./durableNode.js";
import { hostAt, locate } from "./runtime.js";

/**
 * A node that undoes the thread's writes, newest first: those whose operation or tool declares a `compensate`. The thread
 * takes no new write from then on, and what is in doubt is settled first. An undo that fails is in the report, and its
 * write stays COMPENSATING: visibly incomplete. Reach it by an edge, or by `Command({ goto })` from an errorHandler.
 *
 * @example
 * .addNode("undo", compensateNode({ done: (report) => ({ undone: report.undone.length, complete: report.complete }) }))
 */
export function compensateNode<State, Update>(
  options: SagaOptions & { done: (report: SagaReport, state: State) => Update },
): DurableNode<State, Update> {
  if (typeof options?.done !== "function") {
    throw new InvalidOptionError(
      "Expected compensateNode({ done }) to have a function that makes the node's update from the report.",
    );
  }
  checkOnFailure(options.onFailure);
  return async (state, config) => {
    const place = locate(config, "A compensateNode");
    const report = await compensateThread(hostAt(place), place.run.settings.effects, options);
    return options.done(report, state);
  };
}
