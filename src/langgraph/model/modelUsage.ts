// What a model call used and cost. Providers report it on the message, on one chunk of a stream, on several, or not at
// all; what none of them says is estimated from the text, and marked as that. A call is never counted as free.
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type AIMessageChunk, type BaseMessage, type UsageMetadata } from "@langchain/core/messages";
import type { ChatGenerationChunk, LLMResult } from "@langchain/core/outputs";
import { type Prices, priceNanoUsd } from "../../core/price.js";
import { sumOf } from "../../core/spent.js";
import type { Usage } from "../../core/step.js";

/** The usual rule of thumb for English text; OpenAI's own help page gives it. */
const CHARACTERS_PER_TOKEN = 4;

/** What was asked, as far as its cost goes. */
export interface AskedCall {
  readonly model: BaseChatModel;
  readonly options: BaseChatModel["ParsedCallOptions"];
  readonly messages: readonly BaseMessage[];
  readonly prices: Prices;
  /** The tool whose code made the call. */
  readonly tool: string | undefined;
}

/** What came back of it. */
export interface Answer {
  readonly message: AIMessage | AIMessageChunk;
  /** What the stream's chunks reported; by default what stands on the message. */
  readonly reports?: StreamReports;
  /** The answer was cut short: what was reported until then is a lower bound. */
  readonly cut?: boolean;
}

/** The usage of a call. It never throws: an answer that was paid for is recorded, however odd its accounting. */
export async function usageOf(asked: AskedCall, { message, reports, cut = false }: Answer): Promise<Usage> {
  const { ls_model_name, ls_provider } = asked.model.getLsParams(asked.options);
  const requested = ls_model_name ?? asked.model._llmType();
  const model = reports?.model ?? modelNameIn(message.response_metadata) ?? requested;
  const { estimated, ...tokens } = tokensOf(asked, message, reports?.total(ls_provider) ?? usageIn(message), cut);
  const costNanoUsd = await priceNanoUsd(model, ls_provider, tokens, { prices: asked.prices, requested });
  const { inputAudioTokens: _in, outputAudioTokens: _out, ...kept } = tokens;
  return { model, ...kept, costNanoUsd, estimated, ...(asked.tool === undefined ? {} : { tool: asked.tool }) };
}

/** What a model that is asked is called. */
export interface AskedNames {
  readonly model: string | undefined;
  readonly provider: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** The names of a plain model, from the start of its callback run. */
export function askedIn(metadata: Fields, extra: Fields): AskedNames {
  const parameters = extra["invocation_params"];
  const model = textIn(metadata, "ls_model_name") ?? textIn(parameters, "model");
  return { model, provider: textIn(metadata, "ls_provider") };
}

function textIn(of: unknown, name: string): string | undefined {
  const value = typeof of === "object" && of !== null ? (of as Fields)[name] : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The usage of a plain model's call as its answers report it; undefined when one of them reports none. */
export async function usageOfResult(
  result: LLMResult,
  { model: requested = "", provider }: AskedNames,
  prices: Prices,
): Promise<Usage | undefined> {
  let sum: Usage | undefined;
  for (const generation of result.generations.flat()) {
    const { message } = generation as { message?: BaseMessage };
    const reported = message && usageIn(message);
    if (message === undefined || reported === undefined) return undefined;
    const model = modelNameIn(message.response_metadata) ?? requested;
    const tokens = {
      inputTokens: reported.input_tokens,
      outputTokens: reported.output_tokens,
      cachedInputTokens: reported.input_token_details?.cache_read ?? 0,
      cacheWriteTokens: reported.input_token_details?.cache_creation ?? 0,
      reasoningTokens: reported.output_token_details?.reasoning ?? 0,
    };
    const costNanoUsd = await priceNanoUsd(model, provider, tokens, { prices, requested });
    const usage = { model, ...tokens, costNanoUsd, estimated: false };
    sum = sum === undefined ? usage : sumOf(sum, usage);
  }
  return sum;
}

type CountedTokens = Omit<Usage, "model" | "costNanoUsd" | "tool"> & {
  readonly inputAudioTokens: number;
  readonly outputAudioTokens: number;
};

function tokensOf(
  asked: AskedCall,
  message: AIMessage | AIMessageChunk,
  reported: UsageMetadata | undefined,
  cut: boolean,
): CountedTokens {
  const { cache_read, cache_creation, audio: inputAudio } = reported?.input_token_details ?? {};
  const { reasoning, audio: outputAudio } = reported?.output_token_details ?? {};
  const cached = tokenCount(cache_read) + tokenCount(cache_creation);
  let inputTokens = tokenCount(reported?.input_tokens);
  let outputTokens = tokenCount(reported?.output_tokens);
  // Gemini's thoughts and Grok's reasoning are in the total alone, and are billed as output.
  const unlisted = Math.max(0, tokenCount(reported?.total_tokens) - inputTokens - outputTokens);
  outputTokens += unlisted;
  // Cached input that is more than the input was counted beside it.
  if (cached > inputTokens) inputTokens += cached;
  const inputMissing = inputTokens === 0;
  const outputGuess = inputMissing || outputTokens === 0 || cut ? estimateOutput(message) : 0;
  if (inputMissing) inputTokens = estimateInput(asked);
  return {
    inputTokens,
    outputTokens: Math.max(outputTokens, outputGuess),
    cachedInputTokens: tokenCount(cache_read),
    cacheWriteTokens: tokenCount(cache_creation),
    reasoningTokens: Math.max(tokenCount(reasoning), unlisted),
    inputAudioTokens: tokenCount(inputAudio),
    outputAudioTokens: tokenCount(outputAudio),
    estimated: inputMissing || outputGuess > outputTokens || cut,
  };
}

function tokenCount(reported: number | undefined): number {
  return reported !== undefined && Number.isSafeInteger(Math.round(reported)) && reported > 0
    ? Math.round(reported)
    : 0;
}

function estimateInput({ messages, options }: AskedCall): number {
  const { tools, response_format } = options as { tools?: unknown; response_format?: unknown };
  const sent = messages.reduce((sum, message) => sum + textLength(message), 0);
  return Math.ceil((sent + jsonLength(tools) + jsonLength(response_format)) / CHARACTERS_PER_TOKEN);
}

function estimateOutput(message: AIMessage | AIMessageChunk): number {
  return Math.ceil(textLength(message) / CHARACTERS_PER_TOKEN);
}

/** Characters of text and of tool calls. Images and files are not text: what they cost, only a provider can say. */
function textLength(message: BaseMessage): number {
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  return message.text.length + calls.reduce((sum, { name, args }) => sum + name.length + jsonLength(args), 0);
}

function jsonLength(value: unknown): number {
  try {
    return JSON.stringify(value)?.length ?? 0;
  } catch {
    return 0;
  }
}

function modelNameIn(metadata: Record<string, unknown> | undefined): string | undefined {
  // OpenAI's integration says `model_name`, Anthropic's, Mistral's and Ollama's say `model`.
  return [metadata?.["model_name"], metadata?.["model"]].find(
    (name): name is string => typeof name === "string" && name !== "",
  );
}

/** AIMessage's default type parameter resolves usage_metadata to never, so it is read structurally. */
function usageIn(message: BaseMessage): UsageMetadata | undefined {
  return (message as { usage_metadata?: UsageMetadata }).usage_metadata;
}

/** What the chunks of one stream report. Adding chunks up, as LangChain does, counts a repeated report twice. */
export class StreamReports {
  readonly #reports: UsageMetadata[] = [];
  #model: string | undefined;

  add({ message, generationInfo }: ChatGenerationChunk): void {
    const report = usageIn(message);
    if (report !== undefined) this.#reports.push(report);
    // Not from the chunks' sum, in which a name that comes twice is joined to one that nobody knows.
    this.#model = modelNameIn(generationInfo) ?? modelNameIn(message.response_metadata) ?? this.#model;
  }

  get model(): string | undefined {
    return this.#model;
  }

  /**
   * The usage of the whole call. LangChain's integrations report differences, to be added up: the prompt on one chunk and
   * 0 of it on the others (Anthropic, Gemini). A provider that sends its running total through instead repeats the prompt
   * on every report and never falls: there the last report is the whole.
   */
  total(provider: string | undefined): UsageMetadata | undefined {
    const last = this.#reports.at(-1);
    if (last === undefined || this.#isRunningTotal()) return last;
    const [first = last] = this.#reports;
    const sum = this.#reports.reduce(add);
    if (provider !== "anthropic") return sum;
    // Anthropic's last report is a running total of the output alone; the first has some tokens of it already.
    const outputTokens = Math.max(...this.#reports.map(({ output_tokens }) => output_tokens));
    return { ...first, output_tokens: outputTokens, total_tokens: first.input_tokens + outputTokens };
  }

  #isRunningTotal(): boolean {
    return this.#reports.every((report, i) => {
      const before = this.#reports[i - 1];
      if (before === undefined) return report.input_tokens > 0;
      return report.input_tokens >= before.input_tokens && report.output_tokens >= before.output_tokens;
    });
  }
}

function add(a: UsageMetadata, b: UsageMetadata): UsageMetadata {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    total_tokens: a.total_tokens + b.total_tokens,
    input_token_details: addDetails(a.input_token_details, b.input_token_details),
    output_token_details: addDetails(a.output_token_details, b.output_token_details),
  };
}

function addDetails(a: Record<string, number | undefined> = {}, b: Record<string, number | undefined> = {}) {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]));
}
