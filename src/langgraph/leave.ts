// The ways to leave a graph that are no failure. What a PERSON must answer leaves as an interrupt; what TIME ends
// leaves as GraphDrained with a machine-readable reason, so that no retryPolicy, errorHandler or ToolNode takes it for
// an error (G3, G14).
import { GraphDrained, GraphInterrupt, isGraphBubbleUp, isGraphDrained } from "@langchain/langgraph";
import type { Exceeded, LimitName } from "../core/budget.js";
import type { Asked } from "../core/call.js";
import { DatabaseError, DurabilityBarrierError } from "../core/errors.js";
import { sha256 } from "../core/key.js";
import { formatUsd } from "../core/price.js";

const PREFIX = "longhaul:";

/** Why a durable graph stopped before its end without having failed. */
export interface DrainReason {
  /**
   * `due`: run the thread again at `dueAt`. `busy`: another run has it. `lost`: this run lost it to another.
   * `unrecorded`: the database could not be reached; run it again when it is back. `limit`: a budget was used up, and what
   * should have ended with what there was is not here; or the thread's deadline passed while something was under way. `idle`: nothing happened for the budget's `idleMs`. `cancelled`: somebody
   * cancelled the thread. `shutdown`: the process is stopping; the thread is due at once.
   */
  readonly kind: "due" | "busy" | "lost" | "unrecorded" | "limit" | "idle" | "cancelled" | "shutdown";
  readonly threadId: string;
  readonly message: string;
  /** ISO 8601, database time. */
  readonly dueAt?: string;
  readonly idempotencyKey?: string;
  /** The scope that ends because of a limit. */
  readonly scope?: string;
}

/** A pause, a drain or a Command: no failure. */
export function isControlFlow(error: unknown): boolean {
  try {
    return error instanceof Error && isGraphBubbleUp(error);
  } catch {
    // An error that cannot be read is no pause of LangGraph's.
    return false;
  }
}

export function drained(reason: DrainReason): GraphDrained {
  return new GraphDrained(`${PREFIX}${JSON.stringify(reason)}`);
}

/** A clean stop between two supersteps, ours or one that somebody asked for. */
export function isDrained(error: unknown): boolean {
  return error instanceof Error && isGraphDrained(error);
}

/**
 * Tells why `invoke()` or `stream()` of a durable graph threw GraphDrained; undefined for every other error.
 *
 * @example
 * try { await graph.invoke(input, config) }
 * catch (error) { const drain = drainReason(error); if (!drain) throw error; console.log(drain.kind, drain.dueAt); }
 */
export function drainReason(error: unknown): DrainReason | undefined {
  if (!(error instanceof Error) || !isGraphDrained(error)) return undefined;
  const at = error.message.indexOf(PREFIX);
  if (at < 0) return undefined;
  try {
    return JSON.parse(error.message.slice(at + PREFIX.length)) as DrainReason;
  } catch {
    return undefined;
  }
}

/**
 * Pauses the task until a person has answered in the ledger. Thrown without `interrupt()`: that would match answers
 * by call order and let a stray resume value be taken for this question's. The record is the truth, and it is read
 * again whenever the task runs again.
 */
export function paused(asked: readonly Asked[]): GraphInterrupt {
  return new GraphInterrupt(asked.map(interruptFor));
}

/** Pauses the task until a person has raised the limit; the ledger is asked again whenever the task runs again. */
export function atLimit(exceeded: Exceeded, threadId: string): GraphInterrupt {
  const { scope, limit } = exceeded;
  const value = {
    kind: "BUDGET_EXCEEDED",
    message: limitMessage(exceeded),
    threadId,
    scope,
    limit,
    allowed: show(limit, exceeded.allowed),
    spent: show(limit, exceeded.spent),
    reserved: show(limit, exceeded.reserved),
    requested: show(limit, exceeded.requested),
  };
  return new GraphInterrupt([{ id: sha256(`budget ${scope} ${limit}`).slice(0, 32), value }]);
}

/** Ends the scope `finishes` with what it has: what is in it is left until its edge is reached. */
export function finishing(exceeded: Exceeded, threadId: string, finishes: string): GraphDrained {
  return drained({ kind: "limit", threadId, message: limitMessage(exceeded), scope: finishes });
}

/** The scope that an error ends, if it is one that ends a scope. */
export function scopeEndedBy(error: unknown): string | undefined {
  const reason = drainReason(error);
  return reason?.kind === "limit" ? reason.scope : undefined;
}

export function limitMessage({ scope, limit, allowed, spent, reserved, requested }: Exceeded): string {
  if (limit === "deadline") {
    return `The deadline of the budget "${scope}" is over since ${show(limit, allowed)}. Nothing is sent after it. Give it a later one: longhaul budget raise ${quoted(scope)} --deadline <time> --by <who>`;
  }
  const flag = FLAGS[limit];
  if (limit === "iterations" || limit === "activeMs") {
    const spentIt = limit === "iterations" ? `${spent} supersteps were begun` : `it has worked for ${spent} ms`;
    return `The budget "${scope}" allows ${limit} of ${allowed}, and ${spentIt}. Nothing was sent. Raise it: longhaul budget raise ${quoted(scope)} ${flag} <more> --by <who>`;
  }
  return (
    `The budget "${scope}" allows ${limit} of ${show(limit, allowed)}: ${show(limit, spent)} are spent, ${show(limit, reserved)} held by calls under way, ` +
    `and the next call may take ${show(limit, requested)}. Nothing was sent. Raise it: longhaul budget raise ${quoted(scope)} ${flag} <more> --by <who>`
  );
}

const FLAGS = {
  usd: "--usd",
  tokens: "--tokens",
  modelCalls: "--model-calls",
  toolCalls: "--tool-calls",
  iterations: "--iterations",
  activeMs: "--active-ms",
};

/** As a shell takes it. */
function quoted(text: string): string {
  return /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Dollars, a time, or a plain number. */
function show(limit: LimitName, amount: bigint): string {
  if (limit === "usd") return formatUsd(amount);
  return limit === "deadline" ? new Date(Number(amount)).toISOString() : amount.toString();
}

function interruptFor({ record, question }: Asked): { id: string; value: object } {
  const { position, name, key, attempt, doubtSince, settledFrom, inputHash } = record;
  const value = {
    kind: question.kind,
    message: question.message,
    idempotencyKey: key,
    threadId: position.threadId,
    node: position.node,
    name,
    attempt,
    inputHash,
    ...(question.inputHash === undefined ? {} : { newInputHash: question.inputHash }),
    ...(doubtSince === undefined ? {} : { doubtSince: doubtSince.toISOString() }),
    ...(settledFrom === undefined ? {} : { didNotHappenCountsFrom: settledFrom.toISOString() }),
  };
  return { id: key.slice(0, 32), value };
}

/** The ledger could not be reached. */
export function isUnrecorded(error: unknown): error is Error {
  return error instanceof DatabaseError || error instanceof DurabilityBarrierError;
}
