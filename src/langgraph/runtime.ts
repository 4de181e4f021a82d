// The one place that knows LangGraph's internals: where in a graph the current code runs, on which checkpoints that
// place stands, and how the core leaves the graph from there.
import { setMaxListeners } from "node:events";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { RunnableConfig } from "@langchain/core/runnables";
import { getConfig, type LangGraphRunnableConfig } from "@langchain/langgraph";
import type { StepHost } from "../core/call.js";
import { StepScope } from "../core/context.js";
import { NotInDurableGraphError, StepUsageError } from "../core/errors.js";
import { IN_PROCESS_WAIT_MS } from "../core/retry.js";
import type { StepPosition } from "../core/step.js";
import type { RunPurse } from "./budget/runPurse.js";
import { drained, isControlFlow, paused } from "./leave.js";
import { type Meter, meterIn } from "./meter.js";
import { partWithin } from "./part.js";
import type { CallPlace, Place } from "./place.js";
import { branchAt } from "./run/branch.js";
import { overtakenWrite, relationTo } from "./run/relation.js";
import { sleep } from "./run/sleep.js";

/** Longer than any healthy put takes, shorter than a person's patience: past it the database is the problem. */
const BARRIER_DEADLINE_MS = 30_000;
/** How often a wait looks at the ledger's clock, which may run differently from ours. */
const WAIT_LOOK_MS = 250;

export function ambientConfig(): LangGraphRunnableConfig | undefined {
  try {
    return getConfig();
  } catch {
    return undefined;
  }
}

/** Where the code that was handed `config` runs; LangGraph's async context fills in for a missing one. */
export function locate(config: RunnableConfig | undefined, what: string): Place {
  const found = meterIn(config) !== undefined ? config : ambientConfig();
  const meter = meterIn(found);
  if (found === undefined || meter === undefined) {
    throw new NotInDurableGraphError(
      `${what} runs outside a durable graph. Wrap the graph: durableGraph(graph, { ledger }).`,
    );
  }
  return {
    ...placeAt(meter, found.metadata ?? {}, found),
    signal: signalOf(meter, found.signal),
    purse: purseOf(config),
  };
}

/** The budget that pays for what is done under a config. */
export function purseOf(config: RunnableConfig | undefined): RunPurse | undefined {
  return callbackPlace(config)?.purse ?? (meterIn(config) ?? meterIn(ambientConfig()))?.run.purse;
}

/** Aborted with the call or with its run. A node may wait for any number of steps on it at once. */
function signalOf({ run }: Meter, signal: AbortSignal | undefined): AbortSignal {
  const both = signal === undefined ? run.signal : AbortSignal.any([signal, run.signal]);
  setMaxListeners(0, both);
  return both;
}

/** The place of a model call, from its own callbacks: generators lose the async context. */
export function locateCall(meter: Meter, called: CallPlace, signal: AbortSignal | undefined): Place {
  return {
    ...placeAt(meter, called.metadata, ambientConfig()),
    signal: signalOf(meter, signal),
    purse: called.purse ?? meter.run.purse,
  };
}

/** LangGraph's task id is the last part of the task's namespace: `outer:<id>|inner:<id>`. */
function placeAt(
  meter: Meter,
  metadata: Readonly<Record<string, unknown>>,
  config: RunnableConfig | undefined,
): Omit<Place, "signal" | "purse"> {
  const ns = String(metadata["langgraph_checkpoint_ns"] ?? metadata["checkpoint_ns"] ?? "");
  const parentNs = ns.slice(0, Math.max(0, ns.lastIndexOf("|")));
  const bases = basesOf(config, parentNs);
  const position: StepPosition = {
    threadId: String(metadata["thread_id"] ?? meter.run.threadId),
    node: String(metadata["langgraph_node"] ?? ""),
    taskId: ns.slice(ns.lastIndexOf(":") + 1),
    checkpointNs: ns,
    checkpointId: bases.find(([base]) => base === parentNs)?.[1] ?? bases.at(-1)?.[1] ?? "",
    superstep: Number(metadata["langgraph_step"] ?? 0),
  };
  return { run: meter.run, position, bases, moved: meter.hasMoved(ns), unanswered: watchQuestions(config) };
}

interface Scratchpad {
  readonly interruptCounter: number;
  readonly resume: readonly unknown[];
  readonly nullResume?: unknown;
}

/**
 * Tells whether the task has asked by `interrupt()` and has no answer: its code went on all the same, because something
 * caught the pause. LangGraph counts a task's questions from 0 and keeps the answers in a list. An answer that a
 * `responseSchema` refused was taken, and is in no list: what becomes of it is the code's own affair.
 */
function watchQuestions(config: RunnableConfig | undefined): () => boolean {
  const scratchpad = config?.configurable?.["__pregel_scratchpad"] as Scratchpad | undefined;
  if (typeof scratchpad?.interruptCounter !== "number" || !Array.isArray(scratchpad.resume)) return () => false;
  const answers = scratchpad.resume.length;
  const hadOne = scratchpad.nullResume !== undefined;
  return () => {
    const { interruptCounter, resume, nullResume } = scratchpad;
    const refused = hadOne && nullResume === undefined && resume.length === answers;
    return interruptCounter >= resume.length && !refused;
  };
}

/** Every checkpoint that a place stands on, the outermost first. What else is in LangGraph's map came from the caller. */
function basesOf(config: RunnableConfig | undefined, parentNs: string): [string, string][] {
  const map: unknown = config?.configurable?.["checkpoint_map"];
  if (typeof map !== "object" || map === null) return [];
  const pairs = Object.entries(map as Record<string, string>)
    .filter(([ns]) => ns === "" || parentNs === ns || parentNs.startsWith(`${ns}|`))
    .sort(([a], [b]) => a.length - b.length);
  // A `task()` of the functional API stands on its caller's checkpoint, under a namespace that has none of its own.
  return pairs.filter(([, id], i) => pairs.findIndex(([, other]) => other === id) === i);
}

const scopes = new WeakMap<object, StepScope>();

/**
 * The steps of one attempt at a node, or of one tool call in it: the callback run around the code says which. Where
 * callbacks were replaced, LangGraph's `executionInfo`, one object for each attempt, does.
 */
export function scopeOf(config: RunnableConfig | undefined, node: string): StepScope {
  const scope = scopeAt(config);
  if (scope !== undefined) return scope;
  throw new StepUsageError(
    `A step in node "${node}" cannot tell which attempt it belongs to. Hand on the config that LangGraph gave the node.`,
    { step: node },
  );
}

export function scopeAt(config: RunnableConfig | undefined): StepScope | undefined {
  const place = callbackPlace(config);
  if (place !== undefined) return place.scope;
  const attempt = (config as LangGraphRunnableConfig | undefined)?.executionInfo ?? ambientConfig()?.executionInfo;
  if (attempt === undefined) return undefined;
  const scope = scopes.get(attempt) ?? new StepScope(String(config?.metadata?.["langgraph_node"] ?? ""));
  scopes.set(attempt, scope);
  return scope;
}

/** The callback run around some code, as its meter knows it. */
function callbackPlace(config: RunnableConfig | undefined): CallPlace | undefined {
  for (const candidate of [config, ambientConfig()]) {
    const manager = candidate?.callbacks;
    const parentRunId = manager instanceof CallbackManager ? manager.getParentRunId() : undefined;
    const place = meterIn(candidate)?.placeOf(parentRunId);
    if (place !== undefined) return { ...place, ...partWithin(place.scope) };
  }
  return undefined;
}

/**
 * Makes subgraphs that a retried node enters again keep their namespace, and so their task ids and keys (G4):
 * LangGraph counts subgraph calls of a task and does not start again when it retries the node.
 */
export function resetSubgraphCounter(config: RunnableConfig | undefined): void {
  const scratchpad: unknown = config?.configurable?.["__pregel_scratchpad"];
  if (typeof scratchpad === "object" && scratchpad !== null && "subgraphCounter" in scratchpad) {
    scratchpad.subgraphCounter = 0;
    const ns: unknown = config?.metadata?.["langgraph_checkpoint_ns"];
    meterIn(config)?.countsSubgraphsAnew(String(ns));
  }
}

/** What the core needs, at this place. @param scope whose steps these are, where that is known */
export function hostAt(place: Place, scope?: StepScope): StepHost {
  const { run, position, signal } = place;
  const assertLive = () => {
    if (run.lost !== undefined) throw run.leave();
    if (signal.aborted) throw signal.reason;
    if (run.drain !== undefined) throw run.drain;
    if (run.ended) {
      throw new StepUsageError(
        `A step was opened in node "${position.node}" after its run had ended. Await every step.`,
        {
          threadId: position.threadId,
          step: position.node,
        },
      );
    }
  };
  return {
    ledger: run.steps,
    ticket: run.ticket,
    signal,
    open: run.open,
    barrier: async () => {
      try {
        await run.saver?.awaitStored(position.threadId, place.bases, BARRIER_DEADLINE_MS);
      } catch (error) {
        if (run.lost !== undefined) throw run.leave();
        throw error;
      }
    },
    relationTo: (record) => relationTo(record, place),
    branch: () => branchAt(place),
    overtakenWrite: () => overtakenWrite(place),
    pause: (asked) => {
      throw paused(asked);
    },
    waitUntil: (dueAt, reason, key) => waitUntil(place, dueAt, reason, key),
    refused: (why) => {
      run.refused(why);
      throw run.leave();
    },
    assertLive,
    isControlFlow,
    mayRetry: () => run.mayRetry(),
    artifacts: (during) => run.artifacts(during),
    purse: place.purse,
    onStep: (event) => {
      if (event.type === "replayed") run.span?.replayed(event);
      run.onStep?.(event);
    },
    watch: (call, perform) => (run.span === undefined ? perform(call) : run.span.watch(call, scope, perform)),
  };
}

/** Near times are waited for here, on the ledger's clock; for far ones the thread is left and woken. */
async function waitUntil({ run, signal, purse }: Place, dueAt: Date, reason: string, key: string): Promise<void> {
  for (;;) {
    if (run.drain !== undefined) throw run.drain;
    const leftMs = dueAt.getTime() - (await run.steps.now()).getTime();
    if (leftMs <= 0) return;
    if (leftMs > IN_PROCESS_WAIT_MS) {
      await run.wakeAt(dueAt, reason);
      const message = `Waits until ${dueAt.toISOString()}: ${reason}. Run the thread again then, with null as input.`;
      throw drained({ kind: "due", threadId: run.threadId, message, dueAt: dueAt.toISOString(), idempotencyKey: key });
    }
    const look = () => sleep(Math.min(leftMs, WAIT_LOOK_MS), signal);
    await (purse === undefined ? look() : purse.time.waiting(look));
  }
}
