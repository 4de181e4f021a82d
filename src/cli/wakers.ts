// The wakers that `longhaul worker` can be told to use. What they need is loaded when they are asked for.
import { InvalidOptionError } from "../core/errors.js";
import type { Waker } from "../worker/waker.js";

export const WAKERS = ["in-process", "pg-boss", "langgraph-server"] as const;
export type WakerName = (typeof WAKERS)[number];

/** Undefined: the worker's own. */
export async function wakerFor(options: {
  readonly waker: WakerName;
  readonly url?: string;
  readonly server?: string;
}): Promise<Waker | undefined> {
  switch (options.waker) {
    case "in-process":
      return undefined;
    default:
      throw new InvalidOptionError(`not yet: ${options.waker}`);
  }
}
