// A call's price, in whole nano-dollars: by the user's own table, else by the maintained one. A model that neither knows
// has no price: undefined, never 0.
import type { Provider, ModelPrice as TableEntry } from "@pydantic/genai-prices";
import { InvalidOptionError } from "./errors.js";
import { nearestName, spellings, withoutPrefixes } from "./modelName.js";
import { knownOptions } from "./options.js";
import { costOf, type Rates, type TokenCounts } from "./rates.js";
import type { Usage } from "./step.js";

export type { TokenCounts } from "./rates.js";

/** What a model costs: dollars for a million tokens. 0 is free. */
export interface ModelPrice {
  readonly inputUsdPerMillion: number;
  /** For reasoning tokens too. */
  readonly outputUsdPerMillion: number;
  /** Input that the provider read from its cache. @default inputUsdPerMillion */
  readonly cachedInputUsdPerMillion?: number;
  /** Input that the provider wrote to its cache. @default inputUsdPerMillion */
  readonly cacheWriteUsdPerMillion?: number;
}

/** Prices of the user's own, by model id in lower case; made by `checkPrices`. */
export type Prices = ReadonlyMap<string, { readonly id: string; readonly rates: Rates }>;

const REQUIRED = ["inputUsdPerMillion", "outputUsdPerMillion"] as const;
const OPTIONAL = ["cachedInputUsdPerMillion", "cacheWriteUsdPerMillion"] as const;
/** A dollar a token: a hundred times the dearest model there is, and sums of it still fit PostgreSQL's bigint. */
const MAX_USD_PER_MILLION = 1_000_000;

/** @throws InvalidOptionError that names the model whose price cannot be. */
export function checkPrices(prices: Readonly<Record<string, ModelPrice>> | undefined): Prices {
  if (prices !== undefined && !isRecord(prices)) {
    throw new InvalidOptionError("Expected `prices` to be an object of prices by model id.");
  }
  const entries = Object.entries(prices ?? {}).map(([id, price]) => {
    if (id.trim() === "")
      throw new InvalidOptionError("Expected every key of `prices` to be a model id, got an empty one.");
    const what = `the price of "${id}"`;
    if (!isRecord(price)) throw new InvalidOptionError(`Expected ${what} to be an object.`);
    knownOptions(what, price, [...REQUIRED, ...OPTIONAL]);
    for (const name of REQUIRED) checkRate(what, name, price[name]);
    for (const name of OPTIONAL) if (price[name] !== undefined) checkRate(what, name, price[name]);
    const rates = {
      input: price.inputUsdPerMillion,
      output: price.outputUsdPerMillion,
      cachedInput: price.cachedInputUsdPerMillion,
      cacheWrite: price.cacheWriteUsdPerMillion,
    };
    return [id.trim().toLowerCase(), { id: id.trim(), rates }] as const;
  });
  return new Map(entries);
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkRate(what: string, name: string, value: unknown): void {
  if (typeof value === "number" && value >= 0 && value <= MAX_USD_PER_MILLION) return;
  const got = typeof value === "number" || value === null ? String(value) : typeof value;
  throw new InvalidOptionError(
    `Expected \`${name}\` in ${what} to be a number of dollars from 0 to ${MAX_USD_PER_MILLION}, got ${got}.`,
  );
}

export interface PriceOptions {
  /** Prices of the user's own: they win. */
  readonly prices?: Prices | undefined;
  /** The model as it was asked for. It counts where the name that answered is not known. */
  readonly requested?: string | undefined;
}

/**
 * The price of a call in nano-dollars; undefined when nothing knows the model. Dated names, aliases and provider
 * prefixes are understood. The maintained table is loaded at its first use.
 */
export async function priceNanoUsd(
  model: string,
  provider: string | undefined,
  tokens: TokenCounts,
  { prices, requested = model }: PriceOptions = {},
): Promise<bigint | undefined> {
  const names = [...new Set([model, requested])];
  for (const spelling of names.flatMap((name) => spellings(name, provider))) {
    const own = prices?.get(spelling);
    if (own !== undefined) return costOf(tokens, own.rates);
  }
  const table = await loadTable();
  for (const name of names) {
    const entry = findEntry(table, name, provider);
    const cost = entry && costOf(tokens, ratesOf(entry, tokens));
    if (cost !== undefined) return cost;
  }
  return undefined;
}

/** The known model id that is nearest to a name that has no price, for messages; undefined when none is alike. */
export async function nearestModel(name: string, prices?: Prices): Promise<string | undefined> {
  const { waitForUpdate } = await loadTable();
  const providers: readonly Provider[] = (await waitForUpdate()) ?? [];
  const own = [...(prices?.values() ?? [])].map(({ id }) => id);
  return nearestName(name, [...own, ...providers.flatMap(({ models }) => models.map(({ id }) => id))]);
}

type Table = typeof import("@pydantic/genai-prices");
/** Loaded once, with the first call that needs it: it is large, and many graphs call no model. */
let loading: Promise<Table> | undefined;

function loadTable(): Promise<Table> {
  loading ??= import("@pydantic/genai-prices");
  return loading;
}

/** The table's entry for a model: where its prefix says, where its provider says, else at the provider it is known by. */
function findEntry(
  { calcPrice, findProvider }: Table,
  name: string,
  provider: string | undefined,
): TableEntry | undefined {
  const suffixes = withoutPrefixes(name);
  for (const [i, suffix] of suffixes.entries()) {
    const prefix = i === 0 ? undefined : suffixes[i - 1]?.split("/")[0];
    const known = [prefix, provider].filter((id) => id !== undefined && findProvider({ providerId: id }) !== undefined);
    for (const providerId of [...known, undefined]) {
      // Without usage: the table's rates are wanted, and the sum is made here, in whole numbers.
      const found = calcPrice({}, suffix, providerId === undefined ? {} : { providerId });
      if (found !== null) return found.model_price;
    }
  }
  return undefined;
}

function ratesOf(entry: TableEntry, { inputTokens }: TokenCounts): Rates {
  const rate = (key: string): number | undefined => {
    const price = entry[key];
    if (price === undefined || typeof price === "number") return price;
    // A tier counts for the whole call, from the length of its prompt on.
    return price.tiers.reduce((found, tier) => (inputTokens > tier.start ? tier.price : found), price.base);
  };
  return {
    input: rate("input_mtok"),
    output: rate("output_mtok"),
    cachedInput: rate("cache_read_mtok"),
    cacheWrite: rate("cache_write_mtok"),
    inputAudio: rate("input_audio_mtok"),
    reasoning: rate("output_reasoning_mtok"),
    outputAudio: rate("output_audio_mtok"),
    calls: rate("requests_kcount"),
  };
}

/** Dollars with as many digits as are there, from nano-dollars: exact, without a float on the way. */
export function formatUsd(nanoUsd: bigint): string {
  const sign = nanoUsd < 0n ? "-" : "";
  const digits = (nanoUsd < 0n ? -nanoUsd : nanoUsd).toString().padStart(10, "0");
  const fraction = digits.slice(-9).replace(/0{1,5}$/, "");
  return `${sign}${digits.slice(0, -9)}.${fraction}`;
}

/** Nano-dollars from dollars as a person writes them; undefined for what is no amount. Exact: no float on the way. */
export function parseUsd(text: string): bigint | undefined {
  const [, units, fraction = ""] = /^\$?(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text.trim()) ?? [];
  return units === undefined ? undefined : BigInt(units + fraction.padEnd(9, "0"));
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
