// Tokens to money, in whole nano-dollars. A model without a known price has no price: undefined, never 0.
import type { Usage } from "./step.js";

/** Tokens as a provider reports them. Input includes cached input; output includes reasoning. */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly reasoningTokens: number;
}

const NANO_PER_USD = 1e9;
/** Loaded once, with the first call that has a price: it is large, and many graphs call no model. */
let table: Promise<typeof import("@pydantic/genai-prices")> | undefined;

/** The price of a call in nano-dollars; undefined when the table does not know the model. Loads the table at first use. */
export async function priceNanoUsd(
  model: string,
  provider: string | undefined,
  tokens: TokenCounts,
): Promise<bigint | undefined> {
  table ??= import("@pydantic/genai-prices");
  const { calcPrice } = await table;
  const usage = {
    input_tokens: tokens.inputTokens,
    output_tokens: tokens.outputTokens,
    cache_read_tokens: tokens.cachedInputTokens,
  };
  const price = (provider && calcPrice(usage, model, { providerId: provider })) || calcPrice(usage, model);
  return price ? BigInt(Math.round(price.total_price * NANO_PER_USD)) : undefined;
}

/** Dollars with as many digits as are there, from nano-dollars: exact, without a float on the way. */
export function formatUsd(nanoUsd: bigint): string {
  const sign = nanoUsd < 0n ? "-" : "";
  const digits = (nanoUsd < 0n ? -nanoUsd : nanoUsd).toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0{1,5}$/, "");
  return `${sign}${digits.slice(0, -9)}.${fraction}`;
}

/** The sum of what calls cost, and how many had no known price. */
export function sumCosts(usages: readonly (Usage | undefined)[]): { costNanoUsd: bigint; unpriced: number } {
  let costNanoUsd = 0n;
  let unpriced = 0;
  for (const usage of usages) {
    if (usage?.costNanoUsd !== undefined) costNanoUsd += usage.costNanoUsd;
    else if (usage !== undefined) unpriced++;
  }
  return { costNanoUsd, unpriced };
}
