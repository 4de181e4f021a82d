import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkPrices,
  formatUsd,
  type ModelPrice,
  nearestModel,
  parseUsd,
  priceNanoUsd,
  type TokenCounts,
} from "../../src/core/price.js";
import { costOf, type Rates } from "../../src/core/rates.js";
import { openLedger } from "../../src/index.js";

const tokens = (counts: Partial<TokenCounts> = {}): TokenCounts => ({
  inputTokens: 1000,
  outputTokens: 500,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  ...counts,
});

describe("the maintained price table", () => {
  it.each([
    ["a plain name", "gpt-4.1-mini", undefined],
    ["a dated name", "gpt-4.1-mini-2025-04-14", "openai"],
    ["capitals", "GPT-4.1-Mini", undefined],
    ["a provider's prefix", "openai/gpt-4.1-mini", undefined],
    ["a prefix through a gateway that speaks another provider's API", "openai/gpt-4.1-mini", "anthropic"],
    ["the prefix of a list of models", "models/gpt-4.1-mini", "openai"],
    ["a provider that the table does not know", "gpt-4.1-mini", "my-proxy"],
  ])("knows a model by %s", async (_what, model, provider) => {
    expect(await priceNanoUsd(model, provider, tokens())).toBe(1_200_000n);
  });

  it("prices other providers' models by their spellings", async () => {
    expect(await priceNanoUsd("models/gemini-2.5-flash", "google_genai", tokens())).toBe(1_550_000n);
    expect(await priceNanoUsd("claude-sonnet-4-5-20250929", "anthropic", tokens())).toBe(10_500_000n);
    expect(await priceNanoUsd("deepseek-chat", "openai", tokens())).toBeGreaterThan(0n);
  });

  it("bills cached input at its own rate, and a cache write at its own", async () => {
    // claude-sonnet-4-5: 3 and 15 dollars; 0.30 for a read of the cache, 3.75 for a write.
    const cached = tokens({ cachedInputTokens: 600, cacheWriteTokens: 300 });
    expect(await priceNanoUsd("claude-sonnet-4-5", "anthropic", cached)).toBe(
      100n * 3000n + 600n * 300n + 300n * 3750n + 500n * 15_000n,
    );
  });

  it("bills reasoning as output, once", async () => {
    const thought = tokens({ reasoningTokens: 400 });
    expect(await priceNanoUsd("gpt-5-mini", "openai", thought)).toBe(
      await priceNanoUsd("gpt-5-mini", "openai", tokens()),
    );
  });

  it("bills a long prompt at the tier of long prompts", async () => {
    const long = tokens({ inputTokens: 300_000, outputTokens: 0 });
    expect(await priceNanoUsd("gemini-2.5-pro", "google", long)).toBe(300_000n * 2500n);
  });

  it("does not bill more cached tokens than there was input", async () => {
    const odd = tokens({ inputTokens: 100, outputTokens: 0, cachedInputTokens: 5000 });
    expect(await priceNanoUsd("gpt-4.1-mini", "openai", odd)).toBe(100n * 100n);
  });
});

describe("BUD-03: a model without a price", () => {
  const catalogue = checkPrices({ "demo-large-4-1": { inputUsdPerMillion: 2, outputUsdPerMillion: 10 } });

  it("BUD-03: is unpriced, never 0, and its nearest known name is told", async () => {
    expect(await priceNanoUsd("demo-large-4.1", "demo", tokens(), { prices: catalogue })).toBeUndefined();
    expect(await nearestModel("demo-large-4.1", catalogue)).toBe("demo-large-4-1");
    expect(await nearestModel("gpt-4.1-minii")).toBe("gpt-4.1-mini");
    expect(await nearestModel("anthropic/claude-opus-4.11")).toBe("claude-opus-4-1");
    expect(await nearestModel("zzzzzzzzzzzz", catalogue)).toBeUndefined();
    expect(await nearestModel("")).toBeUndefined();
  });

  it.each([
    ["its id", "demo-large-4-1", undefined],
    ["a dated alias", "demo-large-4-1-2026-02-01", undefined],
    ["a compact date", "demo-large-4-1@20260201", undefined],
    ["the latest snapshot", "demo-large-4-1-latest", undefined],
    ["a provider's prefix", "demo/demo-large-4-1", "demo"],
    ["prefix and date", "gateway/models/Demo-Large-4-1-20260201", "other"],
  ])("BUD-03: a name of the user's catalogue is found by %s", async (_what, model, provider) => {
    expect(await priceNanoUsd(model, provider, tokens(), { prices: catalogue })).toBe(7_000_000n);
  });

  it("BUD-03: a key with a prefix is found by the name without one, at that provider alone", async () => {
    const prices = checkPrices({ "demo/large": { inputUsdPerMillion: 1, outputUsdPerMillion: 0 } });
    expect(await priceNanoUsd("large", "demo", tokens(), { prices })).toBe(1_000_000n);
    expect(await priceNanoUsd("large", "other", tokens(), { prices })).toBeUndefined();
  });

  it("BUD-03: a price without a rate for cached input bills it in full, not as 0", async () => {
    const cached = tokens({ cachedInputTokens: 900, cacheWriteTokens: 50 });
    expect(await priceNanoUsd("demo-large-4-1", undefined, cached, { prices: catalogue })).toBe(7_000_000n);
  });

  it("BUD-03: the model that was asked for counts where the answer's name is unknown, and not where it is known", async () => {
    const options = { prices: catalogue, requested: "demo-large-4-1" };
    expect(await priceNanoUsd("house-blend", undefined, tokens(), options)).toBe(7_000_000n);
    expect(await priceNanoUsd("gpt-4.1-mini", "openai", tokens(), { requested: "gpt-4.1" })).toBe(1_200_000n);
  });

  it("BUD-03: a model without a rate for what was used is unpriced", () => {
    expect(costOf(tokens(), { input: 1 })).toBeUndefined();
    expect(costOf(tokens({ outputTokens: 0 }), { input: 1 })).toBe(1_000_000n);
    expect(costOf(tokens(), {})).toBeUndefined();
  });
});

describe("a price table of the user's", () => {
  it("wins over the maintained one, also with 0 for a model of one's own", async () => {
    const prices = checkPrices({ "gpt-4.1-mini": { inputUsdPerMillion: 0, outputUsdPerMillion: 0 } });
    expect(await priceNanoUsd("gpt-4.1-mini-2025-04-14", "openai", tokens(), { prices })).toBe(0n);
  });

  it("names the rates of its own for cached input and cache writes", async () => {
    const prices = checkPrices({
      mine: {
        inputUsdPerMillion: 1,
        outputUsdPerMillion: 4,
        cachedInputUsdPerMillion: 0.1,
        cacheWriteUsdPerMillion: 1.25,
      },
    });
    const counts = tokens({ cachedInputTokens: 600, cacheWriteTokens: 300 });
    expect(await priceNanoUsd("mine", undefined, counts, { prices })).toBe(
      100n * 1000n + 600n * 100n + 300n * 1250n + 500n * 4000n,
    );
  });

  it("is not changed by what happens to the object afterwards", async () => {
    const price = { inputUsdPerMillion: 1, outputUsdPerMillion: 0 };
    const prices = checkPrices({ mine: price });
    price.inputUsdPerMillion = 999;
    expect(await priceNanoUsd("mine", undefined, tokens(), { prices })).toBe(1_000_000n);
  });

  it.each([
    ["a negative rate", { inputUsdPerMillion: -1, outputUsdPerMillion: 1 }, "got -1"],
    ["NaN", { inputUsdPerMillion: Number.NaN, outputUsdPerMillion: 1 }, "got NaN"],
    ["infinity", { inputUsdPerMillion: 1, outputUsdPerMillion: Number.POSITIVE_INFINITY }, "got Infinity"],
    ["a text", { inputUsdPerMillion: "3", outputUsdPerMillion: 1 }, "got string"],
    ["a bigint", { inputUsdPerMillion: 3n, outputUsdPerMillion: 1 }, "got bigint"],
    ["a missing rate", { inputUsdPerMillion: 3 }, "outputUsdPerMillion"],
    ["null for a rate", { inputUsdPerMillion: 3, outputUsdPerMillion: 1, cachedInputUsdPerMillion: null }, "got null"],
    ["a dollar sum nobody charges", { inputUsdPerMillion: 1e12, outputUsdPerMillion: 1 }, "1000000"],
    [
      "a misspelt rate",
      { inputUsdPerMillion: 3, outputUsdPerMillion: 1, cachedUsdPerMillion: 1 },
      "cachedUsdPerMillion",
    ],
    ["no object", 3, "object"],
    ["null", null, "object"],
  ])("is refused with %s, at construction and by the model's name", (_what, price, said) => {
    const prices = { "odd-model": price } as unknown as Record<string, ModelPrice>;
    const open = () => openLedger({ prices });
    expect(open).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    expect(open).toThrow("odd-model");
    expect(open).toThrow(said);
  });

  it("is refused when it is no table, or has a nameless model", () => {
    for (const prices of [[], "gpt", 3, null, { " ": { inputUsdPerMillion: 1, outputUsdPerMillion: 1 } }]) {
      expect(() => openLedger({ prices: prices as never })).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION" }),
      );
    }
  });
});

/** Rates as tables have them: up to six decimals. */
const rate = fc.integer({ min: 0, max: 1_000_000_000 }).map((micro) => micro / 1e6);
const rates: fc.Arbitrary<Rates> = fc.record({
  input: rate,
  output: rate,
  cachedInput: fc.option(rate, { nil: undefined }),
  cacheWrite: fc.option(rate, { nil: undefined }),
  reasoning: fc.option(rate, { nil: undefined }),
});
const counts: fc.Arbitrary<TokenCounts> = fc.record({
  inputTokens: fc.nat({ max: 10_000_000_000 }),
  outputTokens: fc.nat({ max: 10_000_000_000 }),
  cachedInputTokens: fc.nat({ max: 10_000_000 }),
  cacheWriteTokens: fc.nat({ max: 10_000_000 }),
  reasoningTokens: fc.nat({ max: 10_000_000 }),
});

describe("the cost of a call", () => {
  it("is never negative", () => {
    fc.assert(fc.property(counts, rates, (used, table) => (costOf(used, table) ?? -1n) >= 0n));
  });

  it("never falls when more tokens come in or go out", () => {
    fc.assert(
      fc.property(
        counts,
        rates,
        fc.nat({ max: 1_000_000 }),
        fc.nat({ max: 1_000_000 }),
        (used, table, more, moreOut) => {
          const longer = { ...used, inputTokens: used.inputTokens + more, outputTokens: used.outputTokens + moreOut };
          return (costOf(longer, table) ?? -1n) >= (costOf(used, table) ?? 0n);
        },
      ),
    );
  });

  it("is exact: whole nano-dollars of whole micro-dollar rates, whatever the size", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 10n ** 9n), (used, microUsd) => {
        const table = { input: Number(microUsd) / 1e6, output: 0 };
        const exact = (used * microUsd * 1000n + 500_000n) / 1_000_000n;
        expect(costOf(tokens({ inputTokens: Number(used), outputTokens: 0 }), table)).toBe(exact);
      }),
    );
  });

  it("of calls is the same whether summed or asked at once, to the nano-dollar", () => {
    fc.assert(
      fc.property(fc.nat({ max: 100_000_000 }), fc.nat({ max: 100_000_000 }), (a, b) => {
        // 0.10 dollars a million: 100 nano-dollars a token.
        const cost = (used: number) => costOf(tokens({ inputTokens: used, outputTokens: 0 }), { input: 0.1 }) ?? -1n;
        expect(cost(a) + cost(b)).toBe(cost(a + b));
      }),
    );
  });

  it("survives rates that are written with an exponent", () => {
    expect(costOf(tokens({ inputTokens: 1_000_000, outputTokens: 0 }), { input: 1e-7, output: 0 })).toBe(100n);
    expect(costOf(tokens({ inputTokens: 1_000_000_000, outputTokens: 0 }), { input: 1e-14, output: 0 })).toBe(1n);
  });

  it("counts what is no number of tokens as none", () => {
    const odd = tokens({ inputTokens: Number.NaN, outputTokens: -5, cachedInputTokens: Number.POSITIVE_INFINITY });
    expect(costOf(odd, { input: 1, output: 1 })).toBe(0n);
  });
});

describe("dollars as text", () => {
  it("are read back as they were written", () => {
    fc.assert(fc.property(fc.bigInt(0n, 10n ** 18n - 1n), (nanoUsd) => parseUsd(formatUsd(nanoUsd)) === nanoUsd));
  });

  it("are read as people write them, and refused when they are no amount", () => {
    expect([parseUsd("0.5"), parseUsd("$17"), parseUsd("3")]).toEqual([500_000_000n, 17_000_000_000n, 3_000_000_000n]);
    for (const text of ["", "-1", "1e3", "abc", "1.", ".5", "0.0000000001", "1,5"])
      expect(parseUsd(text)).toBeUndefined();
  });
});
