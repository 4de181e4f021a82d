// One call of a durable model: asked, recorded as a step with what it cost, and answered from the record on a replay.
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { canonicalJson, sha256 } from "../../core/key.js";
import type { Classifier, RetryPolicy } from "../../core/retry.js";
import { noteSpent } from "../../core/spent.js";
import type { Usage } from "../../core/step.js";
import { messageCodec } from "../../values/messageCodec.js";
import { performStep } from "../durable.js";
import { LEDGER_PARTS } from "../ledger.js";
import { type Meter, meterAt, meterIn } from "../meter.js";
import { ambientConfig, locate, locateCall, scopeAt } from "../runtime.js";
import { ChunkQueue } from "./chunkQueue.js";
import { type AskedModel, estimateModelCall, outputCapIn, type SentParameters, schemasIn } from "./modelEstimate.js";
import { describeRequest } from "./modelRequest.js";
import { type Answer, type AskedNames, StreamReports, usageOf } from "./modelUsage.js";

/** Ten minutes: long reasoning calls take several. */
const MODEL_TIMEOUT_MS = 600_000;

/** What is replaced: the methods in which every call ends. */
export interface Model extends BaseChatModel {
  _streamResponseChunks(
    messages: BaseMessage[],
    options: Options,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk>;
}
export type Options = BaseChatModel["ParsedCallOptions"];

/** What is behind a durable model. */
export interface Behind {
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

/** The run that a call belongs to: from its own callbacks, else from the node around it. */
function meterOf(manager: CallbackManagerForLLMRun | undefined): Meter | undefined {
  const own = manager === undefined ? undefined : meterAt(manager.handlers, manager.runId);
  // Callbacks given for one call replace the run's; the node around the call still knows it.
  return own ?? meterIn(ambientConfig());
}

export async function generate(call: Call): Promise<ChatResult> {
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
      return { message: first.message };
    },
  });
  if (fresh === undefined) return { generations: [{ text: message.text, message: asReplay(message) }] };
  const generations = fresh.generations.map((generation, i) => (i === 0 ? { ...generation, message } : generation));
  return { ...fresh, generations };
}

export async function* stream(call: Call): AsyncGenerator<ChatGenerationChunk> {
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
      return collect(behind.sender._streamResponseChunks(messages, { ...options, signal }, manager), chunks, signal);
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

/** Reads a stream to its end. One that breaks off throws what it broke off with, and says what there was of it. */
async function collect(
  source: AsyncGenerator<ChatGenerationChunk>,
  chunks: ChunkQueue,
  signal: AbortSignal,
): Promise<ModelAnswer<AIMessageChunk>> {
  let sum: ChatGenerationChunk | undefined;
  const reports = new StreamReports();
  const soFar = () => (AIMessageChunk.isInstance(sum?.message) ? { message: sum.message, reports } : undefined);
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      reports.add(chunk);
      sum = sum === undefined ? chunk : sum.concat(chunk);
    }
    // OpenAI's client ends an aborted stream as if it were whole.
    if (signal.aborted) throw new DOMException("The model call was aborted before its answer was whole.", "AbortError");
  } catch (error) {
    const begun = soFar();
    throw begun === undefined ? error : new BrokenOff(error, begun);
  }
  const answer = soFar();
  if (answer === undefined) throw new Error("The model gave no answer.");
  answer.message.response_metadata = { ...sum?.generationInfo, ...answer.message.response_metadata };
  return answer;
}

interface ModelAnswer<T extends AIMessage | AIMessageChunk> extends Answer {
  readonly message: T;
}

/** A stream ended in the middle of its answer, which was paid for until there. */
class BrokenOff extends Error {
  constructor(
    override readonly cause: unknown,
    readonly answer: Answer,
  ) {
    super("The stream broke off.");
  }
}

/** Records one call as a step of the node attempt, or tool call, that it is made in. */
async function recordCall<T extends AIMessage | AIMessageChunk>(
  { model, behind, messages, options, manager }: Call,
  meter: Meter,
  how: { ask: (signal: AbortSignal) => Promise<ModelAnswer<T>>; classify?: Classifier },
): Promise<T> {
  const called = meter.placeOf(manager?.runId);
  const place = called === undefined ? locate(undefined, "A durable model") : locateCall(meter, called, options.signal);
  const scope =
    called?.scope ?? scopeAt(undefined) ?? meter.scopeOfTask(place.position.checkpointNs, place.position.node);
  const request = describeRequest(model, messages, options);
  const hash = sha256(canonicalJson(request, "request"));
  const ordinal = scope.ordinal(`model:${hash}`);
  const { prices } = meter.run.ledger[LEDGER_PARTS];
  const tool = called?.toolCallId === undefined ? undefined : called.scope.node;
  const asked = { model, options, messages, prices, tool };
  let usage: Usage | undefined;
  return performStep(place, scope, {
    kind: "llm",
    effect: "read",
    name: "model",
    input: request,
    storeInput: false,
    codec: messageCodec,
    callSite: `model:${called?.toolCallId ?? ""}${scope.part === undefined ? "" : `/${scope.part.name}`}:${hash.slice(0, 16)}:${ordinal}`,
    options: {
      timeoutMs: MODEL_TIMEOUT_MS,
      retry: retryOf(behind, options),
      ...(how.classify === undefined ? {} : { classify: how.classify }),
    },
    usageOf: () => usage,
    about: namesOf(model, options),
    spends: () => estimateModelCall(askedModel(model, messages, options), prices, place.purse?.limitsUsd === true),
    run: async ({ signal }) => {
      const answer = await how.ask(signal).catch(async (error: unknown) => {
        if (!(error instanceof BrokenOff)) throw error;
        throw noteSpent(error.cause, await usageOf(asked, { ...error.answer, cut: true }));
      });
      const { message } = answer;
      // Core would give a message without an id one from the callback run, which a replay could not repeat.
      if (message.id === undefined && manager !== undefined) message.id = `run-${manager.runId}`;
      usage = await usageOf(asked, answer);
      return message;
    },
  });
}

/** A `maxRetries` of the call itself wins: LangChain's retry middleware says 0 there, because it is the layer that retries. */
function retryOf({ retry }: Behind, options: Options): RetryPolicy {
  const { maxRetries } = options as { maxRetries?: unknown };
  return typeof maxRetries === "number" && maxRetries >= 0 ? { ...retry, failures: maxRetries + 1 } : retry;
}

function namesOf(model: BaseChatModel, options: Options) {
  const { ls_model_name, ls_provider } = model.getLsParams(options);
  return { model: ls_model_name ?? model._llmType(), provider: ls_provider } satisfies AskedNames;
}

/** What is known of a call before it is sent. */
function askedModel(model: BaseChatModel, messages: BaseMessage[], options: Options): AskedModel {
  const { ls_max_tokens } = model.getLsParams(options);
  const parameters = model.invocationParams?.(options) as SentParameters | undefined;
  return {
    ...namesOf(model, options),
    request: [messages.map((message) => message.toDict().data), ...schemasIn(parameters)],
    messages: messages.length,
    outputCap: outputCapIn(parameters, options, { maxTokens: ls_max_tokens }),
    answers: typeof parameters?.n === "number" ? parameters.n : 1,
  };
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
