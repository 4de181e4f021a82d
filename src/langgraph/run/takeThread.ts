// Taking a thread for a run of its graph, or leaving it to the run that has it.
import type { RunnableConfig } from "@langchain/core/runnables";
import { drained } from "../leave.js";
import { LEDGER_PARTS, type Ledger } from "../ledger.js";
import type { Start } from "./acquire.js";
import { Run } from "./run.js";

/** How often a run on a server looks whether the thread is free. */
const BUSY_LOOK_MS = 250;

/** Whether the run is one of a LangGraph server. */
export function isServed(options: RunnableConfig): boolean {
  return options.metadata?.["langgraph_host"] !== undefined;
}

/** Takes the thread. A server queues runs itself, so there a run waits one lease for the run before it (G19). */
export async function takeThread(
  ledger: Ledger,
  threadId: string,
  options: RunnableConfig,
  of: Start & { readonly graph: string },
): Promise<Run> {
  const onServer = isServed(options);
  const giveUpAt = performance.now() + (onServer ? ledger[LEDGER_PARTS].leaseMs : 0);
  for (;;) {
    const run = await Run.start(ledger, threadId, "run", of);
    if (!("busyUntil" in run)) return run;
    if (performance.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, BUSY_LOOK_MS));
      options.signal?.throwIfAborted();
      continue;
    }
    if (onServer) await run.wakeWhenFree();
    const dueAt = run.busyUntil.toISOString();
    const message = `Thread "${threadId}" is being run by ${run.by} until ${dueAt} at least. Nothing was done.`;
    throw drained({ kind: "busy", threadId, dueAt, message });
  }
}
