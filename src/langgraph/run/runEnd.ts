// How a run of a graph ended, as its thread says it: what it left with, and what it had asked for before.
import type { RecordedFailure } from "../../core/errors.js";
import type { RunEnd } from "../../core/ledger.js";
import { drainReason, isDrained } from "../leave.js";

interface Standing {
  /** This run, or one around it, was cancelled. */
  readonly cancelled: boolean;
  /** Somebody is asked. */
  readonly interrupted: boolean;
  /** When it wants to run again. */
  readonly dueAt: Date | undefined;
}

/** @param error what the graph left with; undefined: it came to its end, or to an interrupt */
export function endOf(error: unknown, { cancelled, interrupted, dueAt }: Standing): RunEnd {
  const reason = drainReason(error)?.kind;
  if (reason === "cancelled") return cancelled ? "cancelled" : "failed";
  // Without a reason of ours it was the caller's own RunControl, such as a worker's that is stopped.
  if (reason === "shutdown" || (reason === undefined && isDrained(error))) return "due";
  if (interrupted || reason === "limit" || reason === "idle") return "waiting";
  if (dueAt !== undefined) return "due";
  return error === undefined ? "done" : "failed";
}

/** What a thread that waits is shown to wait for, where nothing in its state asks. */
export function stoppedAtLimit(error: unknown): RecordedFailure | undefined {
  const reason = drainReason(error);
  if (reason?.kind !== "limit" && reason?.kind !== "idle") return undefined;
  return { name: "BudgetExceededError", code: "BUDGET_EXCEEDED", message: reason.message };
}
