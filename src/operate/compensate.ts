// Undoing what a thread did, from outside its graph.

import type { RecordedFailure } from "../core/errors.js";
import { checkOnFailure, compensateThread, isUndo, type SagaOptions, type SagaReport } from "../core/saga.js";
import type { Ledger } from "../langgraph/ledger.js";
import { operateOn } from "../langgraph/operateOn.js";
import { databaseOf } from "../openLedger.js";
import { settleStep } from "../postgres/outcomes.js";
import { stepsOfThread } from "../postgres/stepRows.js";
import { assertKnown } from "./knownThread.js";
import { mayRunAgain } from "./redrive.js";

/**
 * Undoes what a thread did, newest first, and closes it to new writes. Call it again once the cause of a failed undo is
 * mended: what was undone stays undone. A thread that is undone in part is shown as failed by `longhaul runs`.
 *
 * @param graph a durable graph that declares the thread's operations and tools
 * @throws NotFoundError for a thread that the ledger does not know, ThreadBusyError while a run has it, InvalidOptionError
 * when it has done an operation that the graph does not declare, OutcomeUnknownError when a write or an undo must be settled first.
 */
export async function compensate(
  ledger: Ledger,
  graph: object,
  request: { threadId: string } & SagaOptions,
): Promise<SagaReport> {
  const { threadId, onFailure } = request;
  checkOnFailure(onFailure);
  const database = await databaseOf(ledger);
  await assertKnown(database, threadId);
  return operateOn(ledger, graph, threadId, async (host, effects) => {
    // To ask again is to say that the cause is mended.
    for (const { record } of await stepsOfThread(database, threadId)) {
      if (isUndo(record) && mayRunAgain(record))
        await settleStep(database, record, { to: "READY", actor: "saga", reason: "undone again" });
    }
    const report = await compensateThread(host, effects, request);
    return { result: report, leaves: report.complete ? { as: "done" } : { as: "failed", failure: incomplete(report) } };
  });
}

/** How `longhaul runs` shows a thread that is undone in part. */
function incomplete({ failed }: SagaReport): RecordedFailure {
  const names = failed.map(({ name }) => name).join(", ");
  return { name: "CompensationIncomplete", message: `not undone: ${names}` };
}
