// Undoing what a thread did, newest first. The thread is closed to new writes before anything is undone, and nothing is
// undone while a write is in doubt (G23). Each undo is a step of its own, with its own intent and receipt; the step that it
// undoes stays COMPENSATING until the undo has succeeded, so a failed undo is seen as what it is: incomplete (G8).
import type { StepCall, StepHost } from "./call.js";
import type { Effects, RegisteredEffect } from "./effect.js";
import { InvalidOptionError, OutcomeUnknownError } from "./errors.js";
import { executeStep } from "./execute.js";
import { recordFailure } from "./failure.js";
import { canonicalJson, sha256 } from "./key.js";
import type { StepRecord } from "./ledger.js";
import { questionAbout } from "./reconcile.js";
import { settleThread } from "./settleThread.js";
import { STATES_IN_DOUBT } from "./step.js";

export interface UndoneStep {
  readonly name: string;
  readonly idempotencyKey: string;
}

export interface SagaReport {
  /** Every write with a `compensate` is undone. */
  readonly complete: boolean;
  /** In the order in which they were undone, those of earlier tries included. */
  readonly undone: readonly UndoneStep[];
  readonly failed: readonly (UndoneStep & { readonly message: string })[];
  /** Writes that happened and have no `compensate`. */
  readonly notDeclared: readonly UndoneStep[];
}

export interface SagaOptions {
  /** After an undo that failed: go on with the older writes, or stop. @default "continue" */
  readonly onFailure?: "continue" | "stop";
}

/** @throws InvalidOptionError for what is neither. */
export function checkOnFailure(onFailure: unknown): void {
  if (onFailure === undefined || onFailure === "continue" || onFailure === "stop") return;
  throw new InvalidOptionError(`Expected \`onFailure\` to be "continue" or "stop", got ${JSON.stringify(onFailure)}.`);
}

/** An undo gets as long as a write. */
const UNDO_TIMEOUT_MS = 60_000;
const LEASE_MS = 30_000;

/** Undoes the thread's writes. Leaves the graph for a person where an outcome, or an undo's, is not known. */
export async function compensateThread(
  host: StepHost,
  effects: Effects,
  options: SagaOptions = {},
): Promise<SagaReport> {
  const { ledger, ticket } = host;
  refuseUndeclared(await ledger.steps(ticket.threadId), effects);
  await ledger.closeToWrites(ticket);
  const { open } = await settleThread(host, effects, { running: "wait" });
  if (open.length > 0) {
    host.pause(
      open.map((record) => ({
        record,
        question: questionAbout(record, effects.get(record.name)?.lookup !== undefined),
      })),
    );
  }
  const done: UndoneStep[] = [];
  const failed: (UndoneStep & { message: string })[] = [];
  const notDeclared: UndoneStep[] = [];
  let left: unknown;
  for (const record of (await ledger.steps(ticket.threadId)).filter(hadEffect).reverse()) {
    const step = { name: record.name, idempotencyKey: record.key };
    const effect = effects.get(record.name);
    if (record.state === "COMPENSATED") done.push(step);
    else if (effect?.compensate === undefined) notDeclared.push(step);
    else if ((failed.length > 0 || left !== undefined) && options.onFailure === "stop") break;
    else {
      try {
        await undo(host, record, effect);
        done.push(step);
      } catch (error) {
        // An undo of unknown outcome asks a person; the older writes are undone all the same.
        if (host.isControlFlow(error) || error instanceof OutcomeUnknownError) left ??= error;
        else failed.push({ ...step, message: recordFailure(error).message });
      }
    }
  }
  if (left !== undefined) throw left;
  return { complete: failed.length === 0, undone: done, failed, notDeclared };
}

/**
 * An operation that the graph does not list may have an undo all the same: to call the thread undone without it would be a
 * lie. A write without a version was made by `step.write`, which has none.
 */
function refuseUndeclared(records: readonly StepRecord[], effects: Effects): void {
  const unknown = records.filter(
    (record) => mayHaveHadEffect(record) && record.version !== undefined && !effects.has(record.name),
  );
  if (unknown.length === 0) return;
  const names = [...new Set(unknown.map(({ name }) => `"${name}"`))].join(", ");
  throw new InvalidOptionError(
    `The thread has done ${names}, which this graph does not declare, so it is not known how to undo it. Nothing was undone. ` +
      "List them: durableGraph(graph, { ledger, operations: [ … ], tools: toolRegistry([ … ]) }).",
  );
}

/** A write in doubt counts too: what it comes to may have to be undone. */
function mayHaveHadEffect(record: StepRecord): boolean {
  return hadEffect(record) || (record.effect === "write" && !isUndo(record) && STATES_IN_DOUBT.includes(record.state));
}

function hadEffect({ effect, state, name }: StepRecord): boolean {
  if (effect !== "write" || isUndo({ name })) return false;
  return state === "SUCCEEDED" || state === "COMPENSATING" || state === "COMPENSATED";
}

export const UNDO_SUFFIX = ":undo";

export function isUndo({ name }: Pick<StepRecord, "name">): boolean {
  return name.endsWith(UNDO_SUFFIX);
}

async function undo(host: StepHost, record: StepRecord, effect: RegisteredEffect): Promise<void> {
  const { ledger } = host;
  if (record.state === "SUCCEEDED") {
    await ledger.settle(record, { to: "COMPENSATING", actor: "saga", reason: "its thread is being undone" });
  }
  await executeStep(undoCall(record, effect), host);
  const seen = await ledger.find(record.key);
  if (seen?.state === "COMPENSATING") await ledger.settle(seen, { to: "COMPENSATED", actor: "saga", reason: "undone" });
}

function undoCall(
  record: StepRecord,
  { compensate, codec, timeoutMs = UNDO_TIMEOUT_MS }: RegisteredEffect,
): StepCall<null> {
  const input = canonicalJson({ undoes: record.key });
  return {
    undo: true,
    intent: {
      key: sha256(canonicalJson([record.key, "undo"])),
      kind: "node",
      effect: "write",
      name: `${record.name}${UNDO_SUFFIX}`,
      version: record.version,
      callSite: "undo",
      position: record.position,
      inputHash: sha256(input),
      input,
      timeoutMs,
      settleMs: timeoutMs + LEASE_MS + UNDO_TIMEOUT_MS,
      keyLifetimeMs: undefined,
      leaseMs: LEASE_MS,
    },
    run: async (context) => {
      const args = {
        input: JSON.parse(record.input ?? "null"),
        receipt: codec.decode((await record.output?.read()) ?? "null"),
      };
      await compensate?.(args, context);
      return null;
    },
  };
}
