// What a response used, as OpenAI reports it, and what that costs.
import { type Prices, priceNanoUsd } from "../core/price.js";
import type { Usage } from "../core/step.js";

interface Reported {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly input_tokens_details?: { readonly cached_tokens?: number };
  readonly output_tokens_details?: { readonly reasoning_tokens?: number };
}

/** Undefined where nothing was reported: then the estimate stands. */
export async function usageOfResponse(reported: unknown, model: string, prices: Prices): Promise<Usage | undefined> {
  if (typeof reported !== "object" || reported === null) return undefined;
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = reported as Reported;
  if (input_tokens === undefined || output_tokens === undefined) return undefined;
  const tokens = {
    inputTokens: input_tokens,
    outputTokens: output_tokens,
    cachedInputTokens: input_tokens_details?.cached_tokens ?? 0,
    cacheWriteTokens: 0,
    reasoningTokens: output_tokens_details?.reasoning_tokens ?? 0,
  };
  const costNanoUsd = await priceNanoUsd(model, "openai", tokens, { prices, requested: model });
  return { model, ...tokens, costNanoUsd, estimated: false };
}
