// Orders a run: what an event or a caller wants done is durable before it is acknowledged, and is ordered once.
import { randomUUID } from "node:crypto";
import { StartConflictError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import type { Ledger } from "../langgraph/ledger.js";
import { durableName } from "../langgraph/run/durableRun.js";
import { encodeInput, identityOf } from "../langgraph/run/orderedInput.js";
import { databaseOf } from "../openLedger.js";
import { type EarlierStart, orderStart, type StartOrder } from "../postgres/starts.js";

export interface StartRequest {
  /** The graph's first input: plain data, messages. */
  readonly input: unknown;
  /** @default a new UUID */
  readonly threadId?: string;
  /** The event that wants the run, by its id at its source. Delivered again it starts nothing. */
  readonly trigger?: { readonly source: string; readonly eventId: string };
  /** For whom; from a source that is trusted. Recorded. */
  readonly tenant?: string;
}

export interface StartAnswer {
  readonly threadId: string;
  /** False when the same was ordered before. */
  readonly started: boolean;
}

/**
 * Orders a run of the graph on a thread of its own, and returns once that is durable: input, thread and wake are one
 * transaction. A worker runs it, or `graph.invoke(null, { configurable: { thread_id: threadId } })`: the thread's first run
 * takes the stored input in place of null, again after a crash before its first checkpoint, and never after it.
 *
 * The same event of the same source is one run, whatever its input then says; so is the same thread id with the same input.
 *
 * @param graph a durable graph of this ledger; name it, `compile({ name })`: one without a name is known by its nodes
 * @throws StartConflictError for an event that started another graph, and for a thread id that was started with another
 * graph or input or has run without `startRun`; InvalidOptionError, UnserializableError for what cannot be.
 * @example
 * const { threadId, started } = await startRun(ledger, graph, { input, trigger: { source: "stripe", eventId: event.id } });
 */
export async function startRun(ledger: Ledger, graph: object, request: StartRequest): Promise<StartAnswer> {
  knownOptions("startRun", request, ["input", "threadId", "trigger", "tenant"]);
  const { trigger, tenant } = request;
  if (trigger !== undefined) knownOptions("startRun's trigger", trigger, ["source", "eventId"]);
  const order: StartOrder = {
    threadId: request.threadId === undefined ? randomUUID() : checkId("threadId", request.threadId),
    orderId: randomUUID(),
    source: trigger && checkId("trigger.source", trigger.source),
    eventId: trigger && checkId("trigger.eventId", trigger.eventId),
    graph: identityOf(ledger, graph),
    graphName: durableName(graph),
    tenant: tenant === undefined ? undefined : checkId("tenant", tenant),
    ...encodeInput(request.input),
  };
  const made = await orderStart(await databaseOf(ledger), order);
  if (made === "made") return { threadId: order.threadId, started: true };
  if (made === "known")
    throw new StartConflictError(
      `Thread "${order.threadId}" has run already, and was not started by startRun. Start another thread, or invoke the graph on this one.`,
      { threadId: order.threadId },
    );
  refuseOther(order, made);
  return { threadId: made.threadId, started: false };
}

function refuseOther(order: StartOrder, earlier: EarlierStart): void {
  const sameEvent = order.source !== undefined && order.source === earlier.source && order.eventId === earlier.eventId;
  const what = sameEvent ? `The event "${order.eventId}" of "${order.source}"` : `Thread "${order.threadId}"`;
  const problem =
    earlier.graph !== order.graph
      ? `has started the graph "${earlier.graph}"${sameEvent ? ` on thread "${earlier.threadId}"` : ""}, and cannot start "${order.graph}"`
      : !sameEvent && earlier.inputHash !== order.inputHash
        ? `was started with another input (${earlier.inputHash.slice(0, 12)}…, now ${order.inputHash.slice(0, 12)}…)`
        : !sameEvent && order.source !== undefined
          ? `was started by ${earlier.source === undefined ? "no event" : `the event "${earlier.eventId}" of "${earlier.source}"`}, and cannot be started by "${order.eventId}" of "${order.source}"`
          : undefined;
  if (problem === undefined) return;
  const hint = sameEvent ? "Give what starts the other graph a source of its own." : "Give it a thread of its own.";
  throw new StartConflictError(`${what} ${problem}. Nothing was started. ${hint}`, { threadId: earlier.threadId });
}
