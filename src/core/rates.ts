// What tokens cost, exactly: the decimals of a price table become whole numbers once, and nothing after that is a float.

/** Tokens as a provider reports them. Input includes cached input and cache writes; output includes reasoning. */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly reasoningTokens: number;
  /** @default 0 */
  readonly cacheWriteTokens?: number;
  /** @default 0 */
  readonly inputAudioTokens?: number;
  /** @default 0 */
  readonly outputAudioTokens?: number;
}

/** Dollars for a million tokens; `undefined` where the table names no rate. */
export interface Rates {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  /** These four are billed as plain input or output where they have no rate of their own: never as nothing. */
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly inputAudio?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly outputAudio?: number | undefined;
  /** Dollars for a thousand calls, on top. */
  readonly calls?: number | undefined;
}

/** A rate has at most twelve decimals; what is finer is rounded up. So one token costs a whole number of these. */
const DECIMALS = 12;
/** Atto-dollars in a nano-dollar. */
const ATTO_PER_NANO = 1_000_000_000n;

/**
 * The cost in whole nano-dollars, rounded half up once, at the end. Undefined when there are tokens for which the table
 * has no rate, or no rate at all: unknown is not free.
 */
export function costOf(tokens: TokenCounts, rates: Rates): bigint | undefined {
  const { cachedInput, cacheWrite, inputAudio, reasoning, outputAudio, input, output, calls } = rates;
  if (input === undefined && output === undefined && calls === undefined) return undefined;
  const parts = [
    ...split(tokens.inputTokens, input, [
      [tokens.cachedInputTokens, cachedInput],
      [tokens.cacheWriteTokens, cacheWrite],
      [tokens.inputAudioTokens, inputAudio],
    ]),
    ...split(tokens.outputTokens, output, [
      [tokens.reasoningTokens, reasoning],
      [tokens.outputAudioTokens, outputAudio],
    ]),
  ];
  let attoUsd = calls === undefined ? 0n : toAtto(calls) * 1000n;
  for (const { count, rate } of parts) {
    if (count === 0n) continue;
    if (rate === undefined) return undefined;
    attoUsd += count * toAtto(rate);
  }
  return (attoUsd + ATTO_PER_NANO / 2n) / ATTO_PER_NANO;
}

/** Takes the special kinds out of a total, each no more than is left, so that no token is billed twice. */
function split(
  total: number,
  rate: number | undefined,
  kinds: readonly (readonly [number | undefined, number | undefined])[],
): { count: bigint; rate: number | undefined }[] {
  let left = whole(total);
  const parts = kinds.map(([count = 0, ownRate]) => {
    const taken = least(whole(count), left);
    left -= taken;
    return { count: taken, rate: ownRate ?? rate };
  });
  return [...parts, { count: left, rate }];
}

/** `Math.min` takes no bigint. */
function least(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

function whole(count: number): bigint {
  return Number.isFinite(count) && count > 0 ? BigInt(Math.round(count)) : 0n;
}

/** Dollars for a million tokens as atto-dollars for one, by the decimals that the number is written with. */
function toAtto(usdPerMillion: number): bigint {
  const [digits = "0", exponent = "0"] = String(usdPerMillion).split("e");
  const [units = "0", fraction = ""] = digits.split(".");
  const places = DECIMALS + Number(exponent) - fraction.length;
  const value = BigInt(units + fraction);
  if (places >= 0) return value * 10n ** BigInt(places);
  const divisor = 10n ** BigInt(-places);
  return (value + divisor - 1n) / divisor;
}
