// The callback handler that every run of a durable graph carries. It is how nodes, tools and models find their run:
// `configurable` comes from clients, who can replace anything in it, but nobody outside the process can forge an
// object. It reaches subgraphs, tools and bare `graph.invoke()` inside a node.
import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { BaseMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import { GraphCallbackHandler, isGraphDrained, isGraphInterrupt, START } from "@langchain/langgraph";
import { StepScope } from "../core/context.js";
import { RepeatedCalls } from "./advice/repeatedCalls.js";
import { UnrecordedCalls } from "./advice/unrecordedCalls.js";
import type { RunPurse } from "./budget/runPurse.js";
import { isControlFlow } from "./leave.js";
import { askedIn } from "./model/modelUsage.js";
import { partWithin } from "./part.js";
import type { CallPlace } from "./place.js";
import type { Run } from "./run/run.js";
import { PlainSpans } from "./span/plainSpans.js";
import { isCountedByTask } from "./subgraphNumbers.js";

export class Meter extends GraphCallbackHandler {
  override name = "langgraph-longhaul";
  override awaitHandlers = true;
  override raiseError = true;
  readonly #places = new Map<string, CallPlace>();
  readonly #tasks = new Map<string, StepScope>();
  /** Attempts at each task, by its namespace, since its count of subgraph calls began. */
  readonly #attempts = new Map<string, number>();

  readonly #unrecorded: UnrecordedCalls;
  readonly #spans: PlainSpans;
  readonly #repeated = new RepeatedCalls();

  constructor(readonly run: Run) {
    super();
    this.#unrecorded = new UnrecordedCalls(run);
    this.#spans = new PlainSpans(run);
  }

  /** Where the callback run `runId` takes place: the node attempt or tool call around it. */
  placeOf(runId: string | undefined): CallPlace | undefined {
    return runId === undefined ? undefined : this.#places.get(runId);
  }

  /** The budget that pays for what the callback run `runId` does. */
  purseAt(runId: string | undefined): RunPurse | undefined {
    return this.placeOf(runId)?.purse ?? this.run.purse;
  }

  /** What the callback run does from here on is in a part of the node, which pays from its own budget. */
  enter(runId: string, scope: StepScope, purse: RunPurse): void {
    const place = this.placeOf(runId);
    if (place !== undefined) this.#places.set(runId, { ...place, scope, purse });
  }

  /** The attempt at the task begins to count its subgraph calls. */
  countsSubgraphsAnew(taskNs: string): void {
    this.#attempts.set(taskNs, 1);
  }

  /**
   * Whether LangGraph gave a place below a retried task another identity than on the attempt before: its subgraph calls
   * were counted on, and are the end of the task's namespace (`outer:<id>|1`).
   */
  hasMoved(ns: string): boolean {
    const counted = [...ns.matchAll(/\|\d+(?=\||$)/g)];
    const byTask = counted.filter(([text]) => isCountedByTask(Number(text.slice(1))));
    return byTask.some(({ index }) => (this.#attempts.get(ns.slice(0, index)) ?? 1) > 1);
  }

  /** One scope for all attempts at a task: good for what may be done again, such as a model call. */
  scopeOfTask(ns: string, node: string): StepScope {
    const scope = this.#tasks.get(ns) ?? new StepScope(node);
    this.#tasks.set(ns, scope);
    return scope;
  }

  override handleInterrupt(): void {
    this.run.interrupted = true;
  }

  override async handleChainStart(
    _chain: unknown,
    _inputs: unknown,
    runId: string,
    parentRunId?: string,
    _tags?: string[],
    metadata: Record<string, unknown> = {},
    _runType?: string,
    runName?: string,
  ): Promise<void> {
    const node = metadata["langgraph_node"];
    const ns = String(metadata["langgraph_checkpoint_ns"] ?? "");
    // A node's own run opens a new attempt; everything below it belongs to that attempt. A chain of the user's may have
    // the node's name too: the node's own run is the outermost of its task.
    const outermost = this.placeOf(parentRunId)?.metadata["langgraph_checkpoint_ns"] !== ns;
    if (typeof node === "string" && node === runName && outermost) {
      const around = this.placeOf(parentRunId);
      const scope = new StepScope(node, "", around?.scope);
      this.#places.set(runId, { scope, toolCallId: undefined, metadata, purse: around?.purse, isNode: true });
      this.#attempts.set(ns, (this.#attempts.get(ns) ?? 0) + 1);
      await this.#beginsNode(runId, node, ns, metadata);
    } else this.#inherit(runId, parentRunId, metadata);
  }

  override async handleToolStart(
    _tool: unknown,
    _input: string,
    runId: string,
    parentRunId?: string,
    _tags?: string[],
    metadata: Record<string, unknown> = {},
    runName?: string,
    toolCallId?: string,
  ): Promise<void> {
    const tool = runName ?? "tool";
    const hasScope = toolCallId !== undefined && toolCallId !== "";
    if (hasScope) {
      const parent = this.placeOf(parentRunId);
      const around = partWithin(parent?.scope) ?? parent;
      const scope = new StepScope(tool, `in:${toolCallId}:`, around?.scope);
      this.#places.set(runId, { scope, toolCallId, metadata, purse: around?.purse });
    } else this.#inherit(runId, parentRunId, metadata);
    const { scope } = this.#mayCall(runId);
    await this.#leaving(runId, this.#unrecorded.toolStarts(runId, { metadata, purse: this.purseAt(runId), scope }));
    if (!this.#unrecorded.isOurs(metadata)) return;
    this.#spans.toolStarts(runId, this.placeOf(runId), tool, hasScope);
    this.#repeated.begins(runId, scope, `the tool "${tool}"`);
  }

  override async handleChatModelStart(
    _model: unknown,
    messages: BaseMessage[][],
    runId: string,
    parentRunId?: string,
    extra: Record<string, unknown> = {},
    _tags?: string[],
    metadata: Record<string, unknown> = {},
  ): Promise<void> {
    this.#inherit(runId, parentRunId, metadata);
    const asked = askedIn(metadata, extra);
    const { scope } = this.#mayCall(runId);
    this.run.settings.deciding?.modelStarts(String(metadata["langgraph_checkpoint_ns"] ?? ""), metadata, extra);
    const call = { extra, metadata, asked, purse: this.purseAt(runId), scope };
    await this.#leaving(runId, this.#unrecorded.modelStarts(runId, messages, call));
    if (!this.#unrecorded.isOurs(metadata)) return;
    this.#spans.modelStarts(runId, this.placeOf(runId), asked);
    this.#repeated.begins(runId, scope, `the model "${asked.model ?? ""}"`);
  }

  /** For nodes of graphs that `guardNodes` does not see, such as one that a node invokes. */
  override async handleChainEnd(_outputs: unknown, runId: string): Promise<void> {
    const scope = this.#endOf(runId);
    if (scope === undefined) return;
    await this.#unrecorded.leaves(scope);
    await scope.close(false);
  }
  override async handleChainError(error: unknown, runId: string): Promise<void> {
    const threadId = this.placeOf(runId)?.metadata["thread_id"] ?? this.run.threadId;
    const scope = this.#endOf(runId);
    if (scope === undefined) return;
    await this.#unrecorded.leaves(scope);
    await scope.close(true).catch(() => undefined);
    if (isGraphInterrupt(error)) this.#repeated.asks(scope);
    // A question of a graph that a node runs on the same thread is the node's own: it is not answered by catching it.
    if (threadId === this.run.threadId && (isGraphInterrupt(error) || isGraphDrained(error)))
      scope.around?.leave(error);
  }
  override async handleToolEnd(_output: unknown, runId: string): Promise<void> {
    this.#places.delete(runId);
    this.#repeated.ends(runId);
    await this.#unrecorded.ends(runId);
    await this.#spans.ends(runId);
  }
  override async handleToolError(error: unknown, runId: string): Promise<void> {
    this.#places.delete(runId);
    this.#repeated.fails(runId);
    await this.#unrecorded.fails(runId, error);
    this.#spans.fails(runId, error);
  }
  override async handleLLMEnd(output: LLMResult, runId: string): Promise<void> {
    this.#places.delete(runId);
    this.#repeated.ends(runId);
    await this.#unrecorded.ends(runId, output);
    await this.#spans.ends(runId, output);
  }
  override async handleLLMError(error: unknown, runId: string): Promise<void> {
    this.#places.delete(runId);
    this.#repeated.fails(runId);
    await this.#unrecorded.fails(runId, error);
    this.#spans.fails(runId, error);
  }

  /** Where a call begins. Throws what its code has left with already: nothing is sent after a pause, or after a cancel. */
  #mayCall(runId: string): { scope: StepScope | undefined } {
    const scope = this.placeOf(runId)?.scope;
    if (this.run.lost !== undefined) scope?.leave(this.run.leave());
    scope?.enter();
    return { scope };
  }

  /** A limit that pauses the graph pauses it also where the node's code catches that. */
  async #leaving(runId: string, admission: Promise<void>): Promise<void> {
    await admission.catch((error: unknown) => {
      if (isControlFlow(error)) this.placeOf(runId)?.scope.leave(error);
      throw error;
    });
  }

  /** The attempt at a node that ends with this callback run. */
  #endOf(runId: string): StepScope | undefined {
    const place = this.placeOf(runId);
    this.#places.delete(runId);
    return place?.isNode ? place.scope : undefined;
  }

  #inherit(runId: string, parentRunId: string | undefined, metadata: Record<string, unknown>): void {
    const parent = this.placeOf(parentRunId);
    const node = String(metadata["langgraph_node"] ?? "");
    const part = partWithin(parent?.scope);
    this.#places.set(runId, {
      scope: part?.scope ?? parent?.scope ?? new StepScope(node),
      toolCallId: parent?.toolCallId,
      metadata,
      purse: part?.purse ?? parent?.purse,
    });
  }

  /** Counts the node's superstep, and opens what is kept back when it is the thread's wrap-up. */
  async #beginsNode(runId: string, node: string, ns: string, metadata: Record<string, unknown>): Promise<void> {
    const purse = this.purseAt(runId);
    const { threadId, innerThreads, wrapUpNode } = this.run;
    const thread = String(metadata["thread_id"] ?? threadId);
    // Our own checkpointer tells of a cancel between two supersteps; another one tells nothing.
    if (this.run.unguarded && node !== START) await this.run.lookForCancel().catch(() => undefined);
    if (this.run.lost !== undefined) this.placeOf(runId)?.scope.leave(this.run.leave());
    if (purse === undefined || innerThreads.has(thread)) return;
    if (node === wrapUpNode && thread === threadId && !ns.includes("|")) await this.run.purse?.beginWrapUp();
    if (!purse.limitsSupersteps || node === START) return;
    const checkpointNs = ns.slice(0, Math.max(0, ns.lastIndexOf("|")));
    const superstep = Number(metadata["langgraph_step"] ?? 0);
    await purse.beginSuperstep({ threadId: thread, checkpointNs, superstep }).catch((error: unknown) => {
      if (!isControlFlow(error)) throw error;
      // The node's guard throws it: what a callback throws is printed as its fault.
      this.placeOf(runId)?.scope.leave(error);
    });
  }
}

/**
 * The meter's other way: under a symbol in `configurable`, which callbacks given for one call do not replace, and which
 * no client can send.
 */
export const METER = Symbol("langgraph-longhaul.meter");

/** The meter of the run on the config's thread; the innermost one when there are several and none is on it. */
export function meterIn(config: RunnableConfig | undefined): Meter | undefined {
  return meterAmong(metersIn(config), config?.configurable?.["thread_id"]);
}

/** Every meter that a config carries, the outermost first. */
export function metersIn(config: RunnableConfig | undefined): readonly Meter[] {
  if (config === undefined) return [];
  const { callbacks, configurable } = config;
  const handlers: readonly unknown[] =
    callbacks === undefined
      ? []
      : Array.isArray(callbacks)
        ? callbacks
        : [...callbacks.handlers, ...callbacks.inheritableHandlers];
  const found = handlers.filter((handler): handler is Meter => handler instanceof Meter);
  if (found.length > 0) return found;
  const carried: unknown = (configurable as { [METER]?: unknown } | undefined)?.[METER];
  return carried instanceof Meter ? [carried] : [];
}

function meterAmong(handlers: readonly unknown[], threadId: unknown): Meter | undefined {
  const meters = handlers.filter((handler): handler is Meter => handler instanceof Meter);
  return meters.find((meter) => meter.run.threadId === threadId) ?? meters.at(-1);
}

/** The meter of the thread on which the callback run `runId` takes place: a nested run carries its outer one's too. */
export function meterAt(handlers: readonly unknown[], runId: string): Meter | undefined {
  const meters = handlers.filter((handler): handler is Meter => handler instanceof Meter);
  const threadId = meters.map((meter) => meter.placeOf(runId)?.metadata["thread_id"]).find((id) => id !== undefined);
  return meterAmong(meters, threadId);
}

/** Callbacks with the meter added, whichever of their two shapes they have. */
export function withMeter(
  callbacks: RunnableConfig["callbacks"],
  meter: BaseCallbackHandler,
): NonNullable<RunnableConfig["callbacks"]> {
  if (callbacks === undefined) return [meter];
  if (Array.isArray(callbacks)) return [...callbacks, meter];
  const copy = callbacks instanceof CallbackManager ? callbacks.copy() : callbacks;
  copy.addHandler(meter, true);
  return copy;
}
