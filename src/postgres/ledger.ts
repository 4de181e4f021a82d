// The core's port on PostgreSQL: binds the statements to one database. The laws are in core/ledger.ts, the statements
// beside their tables.

import type { ApprovalLedger } from "../core/approval.js";
import { type ArtifactIndex, type ArtifactOwner, digestsIn } from "../core/artifact.js";
import type { BudgetLedger } from "../core/budget.js";
import { DatabaseError, isLonghaulError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import type { RunLedger, StepLedger } from "../core/ledger.js";
import type { PinLedger } from "../core/version.js";
import { createApprovals } from "./approvals.js";
import { createArtifactIndex, keepArtifacts } from "./artifacts.js";
import { createBreakers } from "./breakers.js";
import { createBudgetLedger } from "./budgets.js";
import { cancelOfRun } from "./cancels.js";
import { earlierWrites } from "./earlierWrites.js";
import { forksOf, stepInDoubt } from "./forks.js";
import { endAttempt, noteDrift, recordLateSuccess, settleStep } from "./outcomes.js";
import { createPins } from "./pins.js";
import type { Database } from "./pool.js";
import { acquireRun, closeToWrites, ledgerNow, releaseRun, renewRun, wakeThread } from "./runs.js";
import { orderedInput } from "./starts.js";
import { findRead, findStep, lastWrite, stepsOfThread } from "./stepRows.js";
import { beginStep, beginWaiting, claimStepAgain, recordRead, renewStep, reuseRead } from "./steps.js";

/** Whatever PostgreSQL throws reaches the core as one kind of error: the ledger could not do its part. */
function guarded<T extends object>(port: T): T {
  const methods = Object.entries(port).map(([name, method]) =>
    typeof method !== "function"
      ? [name, method]
      : [
          name,
          async (...args: unknown[]) => {
            try {
              return await method(...args);
            } catch (error) {
              if (isLonghaulError(error)) throw error;
              const why = redact(error instanceof Error ? error.message : String(error));
              throw new DatabaseError(`The ledger could not be read or written: ${why}`, { cause: error });
            }
          },
        ],
  );
  return Object.fromEntries(methods) as T;
}

export function createBudgets(database: Database): BudgetLedger {
  return guarded(createBudgetLedger(database));
}

export function createPinLedger(database: Database, namespace: string): PinLedger {
  return guarded(createPins(database, namespace));
}

export function createApprovalLedger(database: Database): ApprovalLedger {
  return guarded(createApprovals(database));
}

export function createArtifacts(database: Database, namespace: string): ArtifactIndex {
  return guarded(createArtifactIndex(database, namespace));
}

export function createStepLedger(database: Database, namespace: string): StepLedger {
  // What a step refers to is kept before the step says so.
  const keep = (text: string | undefined, owner: ArtifactOwner) =>
    text === undefined ? undefined : keepArtifacts(database, namespace, digestsIn(text), owner);
  return guarded<StepLedger>({
    namespace,
    breakers: createBreakers(database, namespace),
    now: () => ledgerNow(database),
    find: (key) => findStep(database, key),
    findRead: (ticket, key) => findRead(database, ticket, key),
    begin: async (ticket, intent, claimId, options) => {
      await keep(intent.input, ticket);
      return beginStep(database, ticket, intent, claimId, options);
    },
    beginWaiting: (ticket, intent, siblingKey) => beginWaiting(database, ticket, intent, siblingKey),
    claimAgain: async (ticket, seen, intent, claimId, reason, options) => {
      await keep(intent.input, ticket);
      return claimStepAgain(database, ticket, seen, intent, claimId, reason, options);
    },
    record: async (claim, outcome) => {
      if (outcome.to === "SUCCEEDED") await keep(outcome.output, { stepKey: claim.key });
      return endAttempt(database, claim, outcome);
    },
    recordRead: async (ticket, intent, output, tookMs) => {
      await keep(`${intent.input ?? ""}${output}`, ticket);
      return recordRead(database, ticket, intent, output, tookMs);
    },
    reuseRead: (ticket, intent) => reuseRead(database, ticket, intent),
    inDoubt: (threadId) => stepInDoubt(database, threadId),
    recordLateSuccess: async (claim, output) => {
      await keep(output, { stepKey: claim.key });
      return recordLateSuccess(database, claim, output);
    },
    settle: async (seen, settlement) => {
      await keep(settlement.output, seen.position);
      return settleStep(database, seen, settlement);
    },
    noteDrift: (seen, inputHash) => noteDrift(database, seen, inputHash),
    renew: (claim, leaseMs) => renewStep(database, claim, leaseMs),
    lastWrite: (threadId) => lastWrite(database, threadId),
    earlierWrites: (ticket, checkpointNs) => earlierWrites(database, ticket, checkpointNs),
    steps: async (threadId) => (await stepsOfThread(database, threadId)).map(({ record }) => record),
    keepNamed: async (ticket, text) => keep(text, ticket),
    closeToWrites: (ticket) => closeToWrites(database, ticket),
  });
}

export function createRunLedger(database: Database): RunLedger {
  return {
    acquire: (threadId, runId, leaseMs, purpose, of) => acquireRun(database, threadId, runId, leaseMs, purpose, of),
    renew: (ticket, leaseMs) => renewRun(database, ticket, leaseMs),
    cancelOf: (ticket) => cancelOfRun(database, ticket),
    release: (ticket, end, failure, wake) => releaseRun(database, ticket, end, failure, wake),
    wake: (threadId, dueAt, reason) => wakeThread(database, threadId, dueAt, reason),
    forks: (threadId) => forksOf(database, threadId),
    orderedInput: (threadId) => orderedInput(database, threadId),
  };
}
