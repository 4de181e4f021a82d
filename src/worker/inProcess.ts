// The waker of one process: a thread that is due is run here and now.
import type { Waker, WakerHost } from "./waker.js";

/** A run starts at once, and takes its wake with it: a claim that is older belongs to a process that died before. */
const CLAIM_MS = 15_000;

/** Runs due threads in the worker's own process. The default. */
export function inProcessWaker(): Waker {
  let host: WakerHost | undefined;
  return {
    name: "in-process",
    claimMs: CLAIM_MS,
    elsewhere: false,
    start: async (worker) => {
      host = worker;
    },
    wake: async (thread) => host?.run(thread) ?? { to: "busy", againInMs: CLAIM_MS },
  };
}
