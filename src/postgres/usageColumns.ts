// What a step used and cost, in its row: read as one value, and added to by every attempt that was paid.
import type { Usage } from "../core/step.js";

/** The columns as they arrive. bigint comes as text: a JavaScript number would lose digits without a word. */
export interface UsageColumns {
  readonly model: string | null;
  readonly tool: string | null;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly cached_input_tokens: string | null;
  readonly cache_write_tokens: string | null;
  readonly reasoning_tokens: string | null;
  readonly cost_nano_usd: string | null;
  readonly usage_estimated: boolean;
}

export const SELECT_USAGE = `s.model, s.tool, s.input_tokens, s.output_tokens, s.cached_input_tokens, s.cache_write_tokens,
  s.reasoning_tokens, s.cost_nano_usd, s.usage_estimated`;

export function toUsage(row: UsageColumns): Usage | undefined {
  if (row.model === null) return undefined;
  return {
    model: row.model,
    inputTokens: Number(row.input_tokens ?? 0),
    outputTokens: Number(row.output_tokens ?? 0),
    cachedInputTokens: Number(row.cached_input_tokens ?? 0),
    cacheWriteTokens: Number(row.cache_write_tokens ?? 0),
    reasoningTokens: Number(row.reasoning_tokens ?? 0),
    costNanoUsd: row.cost_nano_usd === null ? undefined : BigInt(row.cost_nano_usd),
    estimated: row.usage_estimated,
    ...(row.tool === null ? {} : { tool: row.tool }),
  };
}

const TOKENS = ["input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens"];

/**
 * Assignments that add what an attempt used to what the attempts before it had used: each is paid, and each is counted
 * once. The values of `usageValues` stand at `$first` and after; without usage they change nothing.
 */
export function addUsage(first: number): string {
  const model = `$${first}::text`;
  const cost = `$${first + 2}::bigint`;
  const tokens = TOKENS.map((column, i) => {
    const value = `$${first + 4 + i}::bigint`;
    return `${column} = coalesce(s.${column} + ${value}, ${value}, s.${column})`;
  });
  // A price that is not known makes the sum unknown: null, never a part of it.
  return `model = coalesce(${model}, s.model), tool = coalesce($${first + 1}::text, s.tool), ${tokens.join(", ")},
  cost_nano_usd = case when ${model} is null then s.cost_nano_usd when s.model is null then ${cost} else s.cost_nano_usd + ${cost} end,
  usage_estimated = s.usage_estimated or $${first + 3}::boolean`;
}

/** The values for `addUsage`, in their order. */
export function usageValues(usage: Usage | undefined): unknown[] {
  if (usage === undefined) return [null, null, null, false, null, null, null, null, null];
  const { model, tool = null, costNanoUsd = null, estimated } = usage;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage;
  const tokens = [inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens];
  return [model, tool, costNanoUsd, estimated, ...tokens];
}
