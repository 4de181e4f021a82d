// `durable(runtime)`: recorded steps in any node. Everything that becomes a step in this package goes through
// `performStep` here: it makes the identity, the intent and the call, and hands them to the core.
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Artifacts } from "../core/artifact.js";
import { breakerFor } from "../core/breaker.js";
import { type Amounts, NOTHING } from "../core/budget.js";
import type { CallFacts, StepCall } from "../core/call.js";
import type { Codec } from "../core/codec.js";
import type { StepContext, StepScope } from "../core/context.js";
import { InvalidOptionError, StepUsageError } from "../core/errors.js";
import { executeStep } from "../core/execute.js";
import { canonicalJson, checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { UNDO_SUFFIX } from "../core/saga.js";
import type { Effect, StepKind, Usage } from "../core/step.js";
import { toolVersion } from "../core/version.js";
import { type BudgetView, UNLIMITED } from "./budget/budgetView.js";
import { leftBy } from "./leftBy.js";
import {
  checkEffectOptions,
  EFFECT_OPTIONS,
  type EffectOptions,
  type LookupFunction,
  type Operation,
  type RetryOptions,
} from "./operation.js";
import type { Place } from "./place.js";
import { hostAt, locate, scopeOf } from "./runtime.js";
import { intentOf } from "./stepIntent.js";
import { usePinned, useValues } from "./version/pins.js";
import { recordedAs } from "./version/renamedStep.js";

/** Options of one call of a step. */
export interface StepOptions extends RetryOptions {
  /**
   * A business key in place of the step's position: it survives forks and re-submitted input, within the thread.
   * Needed when two calls of one name are open at once.
   */
  readonly key?: string;
  /** @default 60000 */
  readonly timeoutMs?: number;
}

export interface Step {
  /**
   * Reads from the world once: the result is recorded, and a replay returns it without asking again. Transient
   * failures are tried again, up to five times.
   */
  read<I, O>(name: string, input: I, run: (context: StepContext) => Promise<O>, options?: StepOptions): Promise<O>;
  /**
   * Changes the world at most once: intent before, receipt after. Should the outcome be unknown, `lookup` is asked
   * when this node runs again, else a person is. An effect that other processes must be able to look up or undo
   * belongs in an `operation`.
   */
  write<I, O>(
    name: string,
    input: I,
    run: (context: StepContext) => Promise<O>,
    options?: StepOptions &
      Pick<EffectOptions<I, O>, "lookup" | "settleMs" | "onUnknown" | "idempotent" | "keyLifetimeMs">,
  ): Promise<O>;
  /** Runs a declared operation as a step. */
  run<I, O>(operation: Operation<I, O>, input: I, options?: StepOptions): Promise<O>;
}

export interface Durable {
  readonly step: Step;
  /** What is left of the thread's budget. */
  readonly budget: BudgetView;
  /** Big things, which the state names by a small reference. They are kept as long as the thread is. */
  readonly artifacts: Artifacts;
}

/**
 * Recorded steps in a plain node: call it first, with what LangGraph handed the node.
 *
 * @throws NotInDurableGraphError outside a graph made by `durableGraph`.
 * @example
 * .addNode("fetch", async (state, runtime) => {
 *   const { step } = durable(runtime);
 *   return { page: await step.read("fetch", { url: state.url }, ({ signal }) => fetchText(state.url, signal)) };
 * })
 */
export function durable(runtime?: object): Durable {
  const config = runtime as RunnableConfig | undefined;
  const place = locate(config, "durable()");
  return {
    step: stepsAt(place, scopeOf(config, place.position.node)),
    budget: place.purse ?? UNLIMITED,
    artifacts: place.run.artifacts(place.signal),
  };
}

/** The step verbs of one attempt at a node. */
export function stepsAt(place: Place, scope: StepScope): Step {
  const perform = <I, O>(effect: Effect, what: NamedStep<I, O>) =>
    performStep(place, scope, { ...what, kind: "node", effect });
  return {
    read: (name, input, run, options = {}) => {
      checkStepOptions(name, options, ["key", "timeoutMs", "retry", "classify", "breaker"]);
      return perform("read", { name, input, run, options });
    },
    write: (name, input, run, options = {}) => {
      checkStepOptions(name, options, ["key", ...EFFECT_OPTIONS.filter((option) => option !== "compensate")]);
      return perform("write", { name, input, run, options });
    },
    run: (operation, input, options = {}) => {
      checkStepOptions(operation.name, options, ["key", ...EFFECT_OPTIONS]);
      return perform(operation.effect, {
        name: operation.name,
        version: operation.version,
        input,
        run: (context) => operation.run(input, context),
        options: { ...pickEffect(operation), ...given(options) },
        before: async () => {
          await usePinned(place, scope, {
            pinned: { kind: "tool", ...toolVersion(operation.name, operation.version, { effect: operation.effect }) },
            migrates: operation.migrate !== undefined,
            skippable: false,
          });
        },
        migrateOutput: async (output, from) => {
          const change = operation.migrate?.output;
          return change === undefined ? (output as never) : change(output, from);
        },
      });
    },
  };
}

function checkStepOptions(name: string, options: object, known: readonly string[]): void {
  knownOptions(`step "${name}"`, options, known);
  checkEffectOptions(`step "${name}"`, options);
}

/** The options that were really given: an undefined one takes nothing away. */
function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

function pickEffect<I, O>(operation: Operation<I, O>): Partial<EffectOptions<I, O>> {
  const { timeoutMs, settleMs, keyLifetimeMs, idempotent, lookup, onUnknown, retry, classify, breaker } = operation;
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(settleMs === undefined ? {} : { settleMs }),
    ...(keyLifetimeMs === undefined ? {} : { keyLifetimeMs }),
    ...(idempotent === undefined ? {} : { idempotent }),
    ...(lookup === undefined ? {} : { lookup }),
    ...(onUnknown === undefined ? {} : { onUnknown }),
    ...(retry === undefined ? {} : { retry }),
    ...(classify === undefined ? {} : { classify }),
    ...(breaker === undefined ? {} : { breaker }),
  };
}

interface NamedStep<I, O> {
  readonly name: string;
  /** What must be settled first, such as which version of an operation the thread is held to. */
  readonly before?: () => Promise<void>;
  /** Brings the output of an older version into the form of this one. */
  readonly migrateOutput?: (output: unknown, from: string) => Promise<O>;
  readonly version?: string;
  readonly input: I;
  readonly run: (context: StepContext) => Promise<O>;
  readonly options: StepOptions & Partial<EffectOptions<I, O>>;
}

export interface PerformedStep<I, O> extends NamedStep<I, O> {
  readonly kind: StepKind;
  readonly effect: Effect;
  /** The identity within the task where the caller has none of its own: a tool call's id, a model call's ordinal. */
  readonly callSite?: string;
  readonly codec?: Codec;
  /** False for model calls, whose messages are in the checkpoint already. */
  readonly storeInput?: boolean;
  readonly usageOf?: (output: O) => Usage | undefined;
  /** What the call may take; a tool call is one tool call. */
  readonly spends?: () => Promise<Amounts>;
  readonly about?: CallFacts;
  /** The call around the step entered its node before this. */
  readonly entered?: boolean;
}

const ONE_TOOL_CALL: Amounts = { ...NOTHING, toolCalls: 1 };

/** Performs one step at a place: gives it its identity, and lets the core run it. */
export async function performStep<I, O>(place: Place, scope: StepScope, step: PerformedStep<I, O>): Promise<O> {
  if (typeof step.name !== "string") throw new InvalidOptionError("Expected a step's name to be a string.");
  checkId("step name", step.name);
  if (place.moved && step.effect === "write") throw movedWrite(place, step.name);
  if (step.effect === "write" && place.unanswered?.()) {
    // A question that was asked beside this write is still on its way out, and comes first.
    await new Promise((resolve) => setImmediate(resolve));
    throw caughtQuestion(place, `Before the write "${step.name}"`);
  }
  if (step.name.endsWith(UNDO_SUFFIX))
    throw new InvalidOptionError(
      `A step cannot be called "${step.name}": names that end in "${UNDO_SUFFIX}" are those of undos.`,
    );
  const { key } = step.options;
  if (key !== undefined) checkId(`key of step "${step.name}"`, key);
  const input = canonicalJson(step.input, `input of ${step.name}`);
  const callSite = step.callSite ?? scope.callSite(step.name, key);
  const intent = intentOf(place, step, input, callSite);
  const call: StepCall<O> = {
    intent,
    run: step.run,
    lookup: step.options.lookup as LookupFunction<unknown, unknown> | undefined,
    idempotent: step.options.idempotent === true,
    onUnknown: step.options.onUnknown,
    onFork: place.run.settings.onFork,
    retry: step.options.retry,
    classify: step.options.classify,
    breaker: breakerFor(step.name, step.options.breaker, step.input),
    ...(step.codec === undefined ? {} : { codec: step.codec }),
    ...(step.usageOf === undefined ? {} : { usageOf: step.usageOf }),
    spends: step.spends ?? (step.kind === "tool" ? async () => ONE_TOOL_CALL : undefined),
    about: step.about,
    migrateOutput: step.migrateOutput,
  };
  const keyed = key !== undefined || step.callSite !== undefined;
  const { inputHash } = intent;
  const tracked = { name: step.name, key: `${step.name}:${callSite}`, inputHash, keyed, entered: step.entered };
  return scope.track(tracked, async () => {
    await useValues(place, scope);
    await step.before?.();
    return leaving(place, scope, async () => {
      const recorded = await recordedAs(place, scope, intent);
      return recorded === undefined ? call : { ...call, intent: { ...intent, key: recorded } };
    });
  });
}

/** @internal Something took the pause of `interrupt()` for an error, and its question was never answered. */
export function caughtQuestion({ position }: Place, when: string): StepUsageError {
  return new StepUsageError(
    `${when} node "${position.node}" asked by interrupt(), and its code caught the pause and went on without an answer. ` +
      "Let what interrupt() throws through: out of try/catch (isGraphBubbleUp(error) tells it), withFallbacks() and withRetry().",
    { threadId: position.threadId, step: position.node },
  );
}

function movedWrite({ position }: Place, name: string): StepUsageError {
  return new StepUsageError(
    `The write "${name}" is in a subgraph that a retried node has entered again, and LangGraph gave it a new identity there, ` +
      "under which it would happen twice. Make the node that calls the subgraph a durableNode.",
    { threadId: position.threadId, step: `${position.node}/${name}` },
  );
}

/**
 * A run that has lost its thread, or cannot reach its ledger, leaves as drained, whatever that broke on the way: as an
 * error it would become a tool's message, and the model would call again (G3). A step that leaves the graph closes its
 * scope: code that catches the pause must not go on to the next effect.
 */
async function leaving<O>(place: Place, scope: StepScope, made: () => Promise<StepCall<O>>): Promise<O> {
  const host = hostAt(place, scope);
  try {
    const execute = async () => executeStep(await made(), host);
    return await (place.purse === undefined ? execute() : place.purse.time.working(execute));
  } catch (error) {
    const left = leftBy(place, error);
    if (host.isControlFlow(left)) scope.leave(left);
    throw left;
  }
}
