// What a model call may take, before it is sent. With an output cap this is an upper bound: no tokenizer makes more tokens
// of a text than it has bytes. Without one the output is guessed, and a longer answer can pass a limit by the difference.
import type { Amounts } from "../../core/budget.js";
import { UnknownPriceError } from "../../core/errors.js";
import { nearestModel, type Prices, priceNanoUsd } from "../../core/price.js";

/** Output tokens held back for a call that has no cap of its own. */
export const DEFAULT_OUTPUT_TOKENS = 4096;
/** Providers wrap each message in some tokens of their own. */
const TOKENS_PER_MESSAGE = 16;

export interface AskedModel {
  readonly model: string;
  readonly provider: string | undefined;
  /** All that is sent: messages, tools, schemas. */
  readonly request: unknown;
  readonly messages: number;
  readonly outputCap: number | undefined;
  /** Answers asked for: each may be as long as the cap. */
  readonly answers: number;
}

/** @throws UnknownPriceError when dollars are limited and nothing knows what the model costs. */
export async function estimateModelCall(
  { model, provider, request, messages, outputCap, answers }: AskedModel,
  prices: Prices | undefined,
  limitsUsd: boolean,
): Promise<Amounts> {
  const inputTokens = Buffer.byteLength(JSON.stringify(request) ?? "") + messages * TOKENS_PER_MESSAGE;
  const outputTokens = (outputCap ?? DEFAULT_OUTPUT_TOKENS) * answers;
  const tokens = { inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const nanoUsd = limitsUsd ? await priceNanoUsd(model, provider, tokens, { prices }) : 0n;
  if (nanoUsd === undefined) throw await unknownPrice(model, prices);
  return { nanoUsd, tokens: inputTokens + outputTokens, modelCalls: 1, toolCalls: 0 };
}

async function unknownPrice(model: string, prices: Prices | undefined): Promise<UnknownPriceError> {
  const nearest = await nearestModel(model, prices);
  const hint = nearest === undefined ? "" : ` Did you mean "${nearest}"?`;
  return new UnknownPriceError(
    `The price of the model "${model}" is not known, so a budget in dollars cannot hold it.${hint} ` +
      "Give it: openLedger({ prices: { … } }). Nothing was sent.",
  );
}

/** The cap on the output that a call was made with, under any of its providers' names. */
export function outputCapIn(...places: readonly unknown[]): number | undefined {
  const names = [
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxOutputTokens",
    "maxTokens",
    "maxCompletionTokens",
  ];
  for (const place of places) {
    if (typeof place !== "object" || place === null) continue;
    for (const name of names) {
      const value = (place as Record<string, unknown>)[name];
      if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
    }
  }
  return undefined;
}

/** What of a call's parameters is sent as text beside the messages. */
export interface SentParameters {
  readonly tools?: unknown;
  readonly response_format?: unknown;
  readonly text?: unknown;
  readonly n?: unknown;
}

/** The tools and answer schemas that are sent with the messages, and count as input. */
export function schemasIn(parameters: unknown): unknown[] {
  const { tools, response_format, text } = (parameters ?? {}) as SentParameters;
  return [tools, response_format, text].filter((schema) => schema !== undefined);
}
