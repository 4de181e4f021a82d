// The part of a node that the current code runs in. What is called in it with the node's own config, as LangGraph's users are
// used to hand it on, belongs to the part all the same.
import { AsyncLocalStorage } from "node:async_hooks";
import type { StepScope } from "../core/context.js";
import type { RunPurse } from "./budget/runPurse.js";

export interface Part {
  readonly scope: StepScope;
  readonly purse: RunPurse;
}

const current = new AsyncLocalStorage<Part>();

export function inPart<T>(part: Part, work: () => T): T {
  return current.run(part, work);
}

/** The part that the current code runs in, when it is one of `scope`, or of a part of it. */
export function partWithin(scope: StepScope | undefined): Part | undefined {
  const part = current.getStore();
  return part !== undefined && scope !== undefined && part.scope !== scope && part.scope.isWithin(scope)
    ? part
    : undefined;
}
