// `durableModel`: every call of the model inside a durable graph is a recorded step; a replay never reaches the
// network. It overrides the few methods in which all calls end: invoke, stream, bindTools, structured output and
// event streaming go through them.
import { CallbackManager, type CallbackManagerForLLMRun, ensureHandler } from "@langchain/core/callbacks/manager";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage, type UsageMetadata } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import { InvalidOptionError } from "../core/errors.js";
import { canonicalJson, sha256 } from "../core/key.js";
import { priceNanoUsd } from "../core/price.js";
import { type Classifier, checkRetry, maxFailures, type RetryPolicy } from "../core/retry.js";
import type { Usage } from "../core/step.js";
import { ChunkQueue } from "./chunkQueue.js";
import { performStep } from "./durable.js";
import { messageCodec } from "./messageCodec.js";
import { type Meter, meterAt, meterIn } from "./meter.js";
import { describeRequest } from "./modelRequest.js";
import { withoutOwnRetries } from "./modelRetries.js";
import { warnOfLayer } from "./retryLayers.js";
import { ambientConfig, locate, locateCall, scopeAt } from "./runtime.js";

/** Ten minutes: long reasoning calls take several. */
const MODEL_TIMEOUT_MS = 600_000;

/** What is replaced: the methods in which every call ends. */
interface Model extends BaseChatModel {
  _streamResponseChunks(
    messages: BaseMessage[],
    options: Options,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk>;
}
type Options = BaseChatModel["ParsedCallOptions"];

/** What is behind a durable model. */
interface Behind {
  /** As it was given: what answers outside a durable graph. */
  readonly plain: Model;
  /** What sends inside one: the same model, trying once. */
  readonly sender: Model;
  readonly retry: RetryPolicy;
}

/** One call of a durable model. */
interface Call {
  readonly model: BaseChatModel;
  readonly behind: Behind;
  readonly messages: BaseMessage[];
  readonly options: Options;
  readonly manager: CallbackManagerForLLMRun | undefined;
}

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

/** The run that a call belongs to: from its own callbacks, else from the node around it. */
function meterOf(manager: CallbackManagerForLLMRun | undefined): Meter | undefined {
  const own = manager === undefined ? undefined : meterAt(manager.handlers, manager.runId);
  // Callbacks given for one call replace the run's; the node around the call still knows it.
  return own ?? meterIn(ambientConfig());
}

async function generate(call: Call): Promise<ChatResult> {
  const { behind, messages, options, manager } = call;
  const meter = meterOf(manager);
  if (meter === undefined) return behind.plain._generate(messages, options, manager);
  let fresh: ChatResult | undefined;
  const message = await recordCall(call, meter, {
    ask: async (signal) => {
      fresh = await behind.sender._generate(messages, { ...options, signal }, manager);
      const first = fresh.generations[0];
      if (first === undefined || !AIMessage.isInstance(first.message)) throw new Error("The model gave no message.");
      first.message.response_metadata = { ...first.generationInfo, ...first.message.response_metadata };
      return first.message;
    },
  });
  if (fresh === undefined) return { generations: [{ text: message.text, message: asReplay(message) }] };
  const generations = fresh.generations.map((generation, i) => (i === 0 ? { ...generation, message } : generation));
  return { ...fresh, generations };
}

async function* stream(call: Call): AsyncGenerator<ChatGenerationChunk> {
  const { behind, messages, options, manager } = call;
  const meter = meterOf(manager);
  if (meter === undefined) return yield* behind.plain._streamResponseChunks(messages, options, manager);
  const chunks = new ChunkQueue();
  let fresh = false;
  const recorded = recordCall(call, meter, {
    // What was read cannot be taken back: a second try would say it again.
    classify: () => (chunks.begun ? "permanent" : undefined),
    ask: async (signal) => {
      fresh = true;
      return collect(behind.sender._streamResponseChunks(messages, { ...options, signal }, manager), chunks);
    },
  }).finally(() => chunks.end());
  recorded.catch(() => undefined);
  try {
    yield* chunks;
  } finally {
    // A reader that stops early has still ordered, and paid for, the whole answer.
    await recorded.catch(() => undefined);
  }
  if (fresh) return void (await recorded);
  const message = asReplay(await recorded);
  const chunk = new ChatGenerationChunk({ text: message.text, message: asChunk(message) });
  await manager?.handleLLMNewToken(message.text, undefined, undefined, undefined, undefined, { chunk });
  yield chunk;
}

async function collect(source: AsyncGenerator<ChatGenerationChunk>, chunks: ChunkQueue): Promise<AIMessageChunk> {
  let sum: ChatGenerationChunk | undefined;
  for await (const chunk of source) {
    chunks.push(chunk);
    sum = sum === undefined ? chunk : sum.concat(chunk);
  }
  if (sum === undefined || !AIMessageChunk.isInstance(sum.message)) throw new Error("The model gave no answer.");
  sum.message.response_metadata = { ...sum.generationInfo, ...sum.message.response_metadata };
  return sum.message;
}

/** Records one call as a step of the node attempt, or tool call, that it is made in. */
async function recordCall<T extends AIMessage | AIMessageChunk>(
  { model, behind, messages, options, manager }: Call,
  meter: Meter,
  how: { ask: (signal: AbortSignal) => Promise<T>; classify?: Classifier },
): Promise<T> {
  const called = meter.placeOf(manager?.runId);
  const place =
    called === undefined ? locate(undefined, "A durable model") : locateCall(meter, called.metadata, options.signal);
  const scope =
    called?.scope ?? scopeAt(undefined) ?? meter.scopeOfTask(place.position.checkpointNs, place.position.node);
  const request = describeRequest(model, messages, options);
  const hash = sha256(canonicalJson(request, "request"));
  const ordinal = scope.ordinal(`model:${hash}`);
  const { retry } = behind;
  let usage: Usage | undefined;
  return performStep(place, scope, {
    kind: "llm",
    effect: "read",
    name: "model",
    input: request,
    storeInput: false,
    codec: messageCodec,
    callSite: `model:${called?.toolCallId ?? ""}:${hash.slice(0, 16)}:${ordinal}`,
    options: { timeoutMs: MODEL_TIMEOUT_MS, retry, ...(how.classify === undefined ? {} : { classify: how.classify }) },
    usageOf: () => usage,
    run: async ({ signal }) => {
      const message = await how.ask(signal);
      // Core would give a message without an id one from the callback run, which a replay could not repeat.
      if (message.id === undefined && manager !== undefined) message.id = `run-${manager.runId}`;
      usage = await usageOf(model, options, message);
      return message;
    },
  });
}

async function usageOf(model: BaseChatModel, options: Options, message: AIMessage | AIMessageChunk): Promise<Usage> {
  const { ls_model_name, ls_provider } = model.getLsParams(options);
  const answered: unknown = message.response_metadata["model_name"];
  const name = typeof answered === "string" && answered !== "" ? answered : (ls_model_name ?? model._llmType());
  // AIMessage's default type parameter resolves usage_metadata to never, so it is read structurally.
  const metadata = (message as unknown as { usage_metadata?: UsageMetadata }).usage_metadata;
  const tokens = {
    inputTokens: tokenCount(metadata?.input_tokens),
    outputTokens: tokenCount(metadata?.output_tokens),
    cachedInputTokens: tokenCount(metadata?.input_token_details?.cache_read),
    reasoningTokens: tokenCount(metadata?.output_token_details?.reasoning),
  };
  const reported = metadata !== undefined && Number.isFinite(metadata.input_tokens + metadata.output_tokens);
  // Without reported usage the price is not 0, it is not known.
  const costNanoUsd = !reported ? undefined : await priceNanoUsd(name, ls_provider, tokens);
  return { model: name, ...tokens, costNanoUsd };
}

/** An answer that was paid for is recorded, however odd its accounting. */
function tokenCount(reported: number | undefined): number {
  return reported !== undefined && Number.isFinite(reported) && reported > 0 ? Math.round(reported) : 0;
}

function asReplay<T extends AIMessage | AIMessageChunk>(message: T): T {
  message.response_metadata = { ...message.response_metadata, longhaul_replay: true };
  return message;
}

/** A recorded answer in the shape in which a stream gives it. */
function asChunk(message: AIMessage | AIMessageChunk): AIMessageChunk {
  if (AIMessageChunk.isInstance(message)) return message;
  const { content, response_metadata, additional_kwargs, id, usage_metadata, tool_calls = [] } = message;
  const tool_call_chunks = tool_calls.map((call, index) => ({
    type: "tool_call_chunk" as const,
    index,
    name: call.name,
    args: JSON.stringify(call.args),
    ...(call.id === undefined ? {} : { id: call.id }),
  }));
  return new AIMessageChunk({
    content,
    response_metadata,
    additional_kwargs,
    tool_call_chunks,
    ...(id === undefined ? {} : { id }),
    ...(usage_metadata === undefined ? {} : { usage_metadata }),
  });
}
