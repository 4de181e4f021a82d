// Settling a thread's writes of unknown outcome from outside its graph, by lookup.

import { type SettledThread, settleThread } from "../core/settleThread.js";
import type { Ledger } from "../langgraph/ledger.js";
import { operateOn } from "../langgraph/operateOn.js";
import { databaseOf } from "../openLedger.js";
import { assertKnown } from "./knownThread.js";

/**
 * Asks the world about every write of a thread whose outcome is not known, without running its graph and without waiting.
 * What the lookups cannot tell stays open: for a person, or, with `dueAt`, until it is asked again.
 *
 * @param graph a durable graph that declares the thread's operations and tools
 * @throws NotFoundError for a thread that the ledger does not know, ThreadBusyError while a run has it.
 */
export async function reconcile(ledger: Ledger, graph: object, request: { threadId: string }): Promise<SettledThread> {
  await assertKnown(await databaseOf(ledger), request.threadId);
  return operateOn(ledger, graph, request.threadId, async (host, effects) => ({
    result: await settleThread(host, effects, { once: true }),
  }));
}
