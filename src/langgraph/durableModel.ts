// `durableModel`: every call of the model inside a durable graph is a recorded step; a replay never reaches the
// network. It overrides the few methods in which all calls end: invoke, stream, bindTools, structured output and
// event streaming go through them.
import { CallbackManager, type CallbackManagerForLLMRun, ensureHandler } from "@langchain/core/callbacks/manager";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { InvalidOptionError } from "../core/errors.js";
import { checkRetry, maxFailures, type RetryPolicy } from "../core/retry.js";
import { warnOfLayer } from "./advice/retryLayers.js";
import { RECORDED } from "./advice/unrecordedCalls.js";
import { meterIn } from "./meter.js";
import { type Behind, generate, type Model, type Options, stream } from "./model/modelCall.js";
import { withoutOwnRetries } from "./model/modelRetries.js";
import { ambientConfig } from "./runtime.js";

export interface DurableModelOptions {
  /** The model's own retries are switched off for it. @default 5 failures; 1 for a model whose retries cannot be seen */
  readonly retry?: RetryPolicy;
}

const durableModels = new WeakSet<object>();

/**
 * A copy of the model whose every call inside a durable graph is a recorded step, with its tokens and cost. Outside a
 * durable graph it is the plain model. `bindTools`, `withStructuredOutput`, `stream` and `streamEvents` keep working.
 *
 * A call that was recorded is never paid again; a call in flight at a crash is made again, because a model call has
 * no effect but its price. A replayed message carries `response_metadata.longhaul_replay`. Equal calls in one node
 * are told apart by their order. Failures are tried again here, in one layer: the model's own `maxRetries` is taken over.
 * A stream whose first words were read is not tried again.
 *
 * A provider that reports no tokens is not free: they are estimated as a quarter of the characters, rounded up, and
 * `usage.estimated` says so. What an answer that broke off had cost until then is counted too. Prices are those of
 * `openLedger({ prices })`, else of the maintained table; a model that neither knows is unpriced, never 0.
 *
 * @example
 * const model = durableModel(new ChatOpenAI({ model: "gpt-5-mini" }));
 */
export function durableModel<M extends BaseChatModel>(model: M, options: DurableModelOptions = {}): M {
  if (typeof (model as Partial<BaseChatModel> | undefined)?._generate !== "function") {
    throw new InvalidOptionError("Expected durableModel's argument to be a chat model.");
  }
  if (durableModels.has(model)) return model;
  checkRetry("durableModel", options.retry);
  const copy: M = Object.create(model);
  durableModels.add(copy);
  // Its calls are steps, which pay for themselves; a replay pays nothing.
  Object.defineProperty(copy, "metadata", {
    value: { ...model.metadata, [RECORDED]: true },
    configurable: true,
    writable: true,
  });
  const replace = (name: string, value: unknown) =>
    Object.defineProperty(copy, name, { value, configurable: true, writable: true });
  const once = withoutOwnRetries(model);
  const behind: Behind = {
    plain: model as unknown as Model,
    sender: (once ?? model) as unknown as Model,
    // A model whose own retries cannot be seen keeps them, and is not tried again on top.
    retry: options.retry ?? (once === undefined ? { failures: 1 } : {}),
  };
  if (once === undefined && options.retry !== undefined && maxFailures(options.retry) > 1) {
    warnOfLayer(
      `The model ${model.constructor.name} sends by a way of its own, whose retries cannot be switched off from here`,
      "Set its `maxRetries` to 0, or leave `retry` out: its own are then the only ones.",
    );
  }

  replace("_generate", (messages: BaseMessage[], options: Options, manager?: CallbackManagerForLLMRun) =>
    generate({ model: copy, behind, messages, options, manager }),
  );
  if (canStream(model)) {
    replace("_streamResponseChunks", (messages: BaseMessage[], options: Options, manager?: CallbackManagerForLLMRun) =>
      stream({ model: copy, behind, messages, options, manager }),
    );
    // Core's own bridge from chunks to events, on our chunks: a provider's native event stream would go past the ledger.
    const prototype = basePrototypeOf(model);
    replace("_streamChatModelEvents", (messages: BaseMessage[], options: Options, manager?: CallbackManagerForLLMRun) =>
      prototype._streamChatModelEvents.call(copy, messages, options, manager),
    );
  }
  // A stream's generator runs outside the node's context: callbacks given for it take the meter along.
  replace("stream", function stream(this: BaseChatModel, input: never, given?: RunnableConfig) {
    return model.stream.call(this, input, withAmbientMeter(given));
  });
  replace("withRetry", function withRetry(this: BaseChatModel, fields?: object) {
    warnOfLayer(
      "A durable model was given `withRetry()`",
      "The model tries again by itself, and each of its tries would be multiplied: durableModel(model, { retry: { failures } }) sets their number.",
    );
    return model.withRetry.call(this, fields);
  });
  // Some models build a new instance here (ChatOpenAI, and with it bindTools): the copy must be durable too.
  replace("withConfig", function withConfig(this: BaseChatModel, config: object) {
    const configured: unknown = model.withConfig.call(this, config);
    return isChatModel(configured) ? durableModel(configured, options) : configured;
  });
  return copy;
}

function withAmbientMeter(options: RunnableConfig | undefined): RunnableConfig | undefined {
  if (options?.callbacks === undefined || meterIn({ callbacks: options.callbacks }) !== undefined) return options;
  const ambient = ambientConfig();
  const meter = meterIn(ambient);
  if (meter === undefined) return options;
  const around = ambient?.callbacks;
  const manager = new CallbackManager(around instanceof CallbackManager ? around.getParentRunId() : undefined);
  const handlers = Array.isArray(options.callbacks) ? options.callbacks : options.callbacks.handlers;
  for (const handler of [...handlers, meter]) manager.addHandler(ensureHandler(handler), true);
  return { ...options, callbacks: manager, metadata: { ...ambient?.metadata, ...options.metadata } };
}

function isChatModel(value: unknown): value is BaseChatModel {
  return typeof value === "object" && value !== null && "_generate" in value && "_llmType" in value;
}

/** BaseChatModel's own prototype, also when two copies of core are installed. */
function basePrototypeOf(model: BaseChatModel): Model {
  let found = Object.getPrototypeOf(model);
  for (let next = found; next !== null; next = Object.getPrototypeOf(next)) {
    if (Object.hasOwn(next, "_streamChatModelEvents")) found = next;
  }
  return found as Model;
}

function canStream(model: BaseChatModel): boolean {
  const base = basePrototypeOf(model);
  return !model.disableStreaming && (model as unknown as Model)._streamResponseChunks !== base._streamResponseChunks;
}
