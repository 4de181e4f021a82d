// What callers give as a budget: checked before anything runs, and turned into the whole numbers that the ledger keeps.
import {
  type Amounts,
  type Budget,
  LIMIT_NAMES,
  type Limits,
  type ScopeBudget,
  type StoredLimits,
  type ThreadBudget,
  type WrapUp,
} from "./budget.js";
import { InvalidOptionError } from "./errors.js";
import { knownOptions } from "./options.js";

const NANO_PER_USD = 1e9;
/** Past this, nano-dollars are no whole numbers in JavaScript; nobody means it. */
const MAX_USD = 9_000_000;
/** The most a limit of another kind may be: ten thousand years of milliseconds, and as many calls. */
const MAX_COUNT = 3e14;
const AMOUNT_NAMES = ["usd", "tokens", "modelCalls", "toolCalls"] as const;

/** @throws InvalidOptionError that names the limit, for NaN, negatives, fractions of a call, text, and unknown names. */
export function checkLimits(what: string, limits: object, known: readonly string[]): void {
  knownOptions(what, limits, known);
  const given = limits as Readonly<Record<string, unknown>>;
  const { usd, deadline } = given;
  if (usd !== undefined && !(typeof usd === "number" && usd >= 0 && usd <= MAX_USD)) {
    throw new InvalidOptionError(`Expected \`usd\` of ${what} to be dollars from 0 to ${MAX_USD}, got ${String(usd)}.`);
  }
  for (const name of [...LIMIT_NAMES, "idleMs"].slice(1)) {
    const value = given[name];
    if (value === undefined || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_COUNT))
      continue;
    throw new InvalidOptionError(
      `Expected \`${name}\` of ${what} to be a whole number, 0 or more, got ${String(value)}.`,
    );
  }
  if (deadline !== undefined && !(deadline instanceof Date && Number.isFinite(deadline.getTime()))) {
    throw new InvalidOptionError(`Expected \`deadline\` of ${what} to be a Date.`);
  }
}

const BUDGET_NAMES = [...LIMIT_NAMES, "deadline", "onExceeded"];

export function checkThreadBudget(budget: unknown): asserts budget is ThreadBudget {
  const what = "`budget`";
  assertObject(what, budget);
  checkLimits(what, budget, [...BUDGET_NAMES, "wrapUp", "idleMs", "per"]);
  checkOnExceeded(what, budget["onExceeded"]);
  const { wrapUp, per, onExceeded } = budget;
  if (per !== undefined && per !== "thread" && per !== "run")
    throw new InvalidOptionError(`Expected \`per\` of ${what} to be "thread" or "run", got ${JSON.stringify(per)}.`);
  if (onExceeded === "finish" && wrapUp === undefined) {
    throw new InvalidOptionError(
      `\`onExceeded: "finish"\` of ${what} needs \`wrapUp: { node: "…", usd: … }\`: where the thread ends with what it has, and what is kept back for that.`,
    );
  }
  if (wrapUp !== undefined) checkWrapUp(wrapUp, budget as Budget);
}

function checkWrapUp(wrapUp: unknown, limits: Limits): void {
  const what = "`budget.wrapUp`";
  assertObject(what, wrapUp);
  checkLimits(what, wrapUp, [...AMOUNT_NAMES, "node"]);
  if (typeof wrapUp["node"] !== "string" || wrapUp["node"] === "")
    throw new InvalidOptionError(`Expected \`node\` of ${what} to name a node of the graph.`);
  for (const name of AMOUNT_NAMES) {
    const kept = (wrapUp as Limits)[name];
    if (kept === undefined || kept <= (limits[name] ?? Number.POSITIVE_INFINITY)) continue;
    throw new InvalidOptionError(
      `${what} keeps ${name} ${kept} back, which is more than the limit of ${limits[name]}: nothing but the wrap-up could ever run.`,
    );
  }
}

export function checkScopeBudget(what: string, budget: unknown): asserts budget is ScopeBudget {
  assertObject(`\`budget\` of ${what}`, budget);
  checkLimits(`\`budget\` of ${what}`, budget, [...BUDGET_NAMES, "share"]);
  checkOnExceeded(what, budget["onExceeded"]);
  const { share } = budget;
  if (share === undefined || (typeof share === "number" && share >= 0 && share <= 1)) return;
  throw new InvalidOptionError(
    `Expected \`share\` of ${what} to be a part from 0 to 1 of what is left around it, got ${String(share)}.`,
  );
}

function assertObject(what: string, value: unknown): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null) return;
  throw new InvalidOptionError(`Expected ${what} to be an object such as { usd: 5 }.`);
}

function checkOnExceeded(what: string, onExceeded: unknown): void {
  if (onExceeded === undefined || ["pause", "fail", "finish"].includes(onExceeded as string)) return;
  throw new InvalidOptionError(
    `Expected \`onExceeded\` of ${what} to be "pause", "fail" or "finish", got ${JSON.stringify(onExceeded)}.`,
  );
}

export function storedLimits({ usd, deadline, ...limits }: Limits): StoredLimits {
  const { tokens, modelCalls, toolCalls, iterations, activeMs } = limits;
  const nanoUsd = usd === undefined ? undefined : nanoUsdOf(usd);
  return { nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs, deadline };
}

/** What is kept back for a wrap-up. */
export function keptOf(wrapUp: WrapUp | undefined): Amounts {
  const { usd = 0, tokens = 0, modelCalls = 0, toolCalls = 0 } = wrapUp ?? {};
  return { nanoUsd: nanoUsdOf(usd), tokens, modelCalls, toolCalls };
}

/** Dollars as a person writes them, to whole nano-dollars. */
export function nanoUsdOf(usd: number): bigint {
  return BigInt(Math.round(usd * NANO_PER_USD));
}
