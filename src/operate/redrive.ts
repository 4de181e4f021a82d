// Letting a thread go on from where it failed for good or was cancelled.

import { CompensatedError } from "../core/errors.js";
import type { StepRecord } from "../core/ledger.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { settleStep } from "../postgres/outcomes.js";
import { stepsOfThread } from "../postgres/stepRows.js";
import { liftCancel } from "./cancelRun.js";
import { assertKnown } from "./knownThread.js";

/**
 * Lets a thread go on from where it failed, after the cause is mended, or from where it was cancelled: its steps that failed
 * for good or were cancelled become ready, and the thread is woken. Every recorded success stays. Answers with the keys of
 * those steps, none when nothing had failed.
 *
 * @throws NotFoundError for a thread that the ledger does not know, CompensatedError for one that is being undone,
 * ThreadBusyError for one whose cancelled run has not stopped yet.
 */
export async function redrive(
  ledger: Ledger,
  request: { threadId: string; by: string; reason?: string },
): Promise<string[]> {
  const { threadId, by, reason = "redrive" } = request;
  const database = await databaseOf(ledger);
  await assertKnown(database, threadId);
  const records = (await stepsOfThread(database, threadId)).map(({ record }) => record);
  if (records.some(({ state }) => state === "COMPENSATING" || state === "COMPENSATED")) {
    throw new CompensatedError(
      `Thread "${threadId}" is being undone, or was: it takes no new write. Call longhaul compensate again for what is left.`,
      { threadId },
    );
  }
  const redriven: string[] = [...((await liftCancel(database, threadId, by, reason)) ?? [])];
  for (const record of records.filter(mayRunAgain)) {
    if (await settleStep(database, record, { to: "READY", actor: by, reason, wake: true })) redriven.push(record.key);
  }
  return redriven;
}

/** What a person gave up may have happened: only a person's new word may start it again. */
export function mayRunAgain({ state, failure }: StepRecord): boolean {
  return state === "FAILED_PERMANENT" && failure?.code !== "WRITTEN_OFF";
}
