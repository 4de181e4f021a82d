// What a thread may spend. Money is whole nano-dollars; nothing here is ever a float but the dollars that people write.
// Reserve before the call, settle after it: parallel branches and processes that only looked first would all pass.
import { InvalidOptionError } from "./errors.js";
import type { RunTicket } from "./ledger.js";
import { knownOptions } from "./options.js";
import type { Usage } from "./step.js";

/** Each is optional and exact; undefined is no limit, and 0 blocks the first call. */
export interface Limits {
  /** Dollars, for models with a known price; a call of a model without one is refused. */
  readonly usd?: number;
  /** Input and output tokens of model calls. */
  readonly tokens?: number;
  readonly modelCalls?: number;
  readonly toolCalls?: number;
  /** No call starts at or after this time, by the database's clock. */
  readonly deadline?: Date;
}

export interface Budget extends Limits {
  /**
   * At a limit: `pause` asks a person by an interrupt, and the thread goes on once the limit is raised; `fail` throws
   * BudgetExceededError. A tool call always pauses: its error would become a message, and the model would call again.
   * @default "pause"
   */
  readonly onExceeded?: "pause" | "fail";
}

export type LimitName = "usd" | "tokens" | "modelCalls" | "toolCalls" | "deadline";

/** What a call is expected to take, or took. */
export interface Amounts {
  readonly nanoUsd: bigint;
  readonly tokens: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
}

export const NOTHING: Amounts = { nanoUsd: 0n, tokens: 0, modelCalls: 0, toolCalls: 0 };

/** Limits as the ledger keeps them. */
export interface StoredLimits {
  readonly nanoUsd: bigint | undefined;
  readonly tokens: number | undefined;
  readonly modelCalls: number | undefined;
  readonly toolCalls: number | undefined;
  readonly deadline: Date | undefined;
}

/** Why a call was refused. Amounts of `usd` are nano-dollars, those of `deadline` milliseconds since 1970. */
export interface Exceeded {
  readonly scope: string;
  readonly limit: LimitName;
  readonly allowed: bigint;
  readonly spent: bigint;
  readonly reserved: bigint;
  readonly requested: bigint;
}

export interface Reservation {
  /** The step and its attempt, or the call's own id: the same call is reserved once. */
  readonly id: string;
  readonly stepKey: string | undefined;
  readonly attempt: number;
  /** Every scope that pays for it. */
  readonly scopes: readonly string[];
  readonly request: Amounts;
}

export type ReserveAnswer = { readonly reserved: true } | { readonly exceeded: Exceeded } | { readonly lost: "lease" };

/** How a scope stands. */
export interface BudgetState {
  readonly scope: string;
  readonly threadId: string;
  readonly parent: string | undefined;
  /** What the code gave and people raised, together. */
  readonly allowed: StoredLimits;
  readonly spent: Amounts;
  readonly reserved: Amounts;
}

/** The port to budgets. Every call is one transaction; sums never pass a limit, whoever calls at once. */
export interface BudgetLedger {
  /** Makes the scope or gives it the code's limits; what people raised stays. Settles what dead runs had reserved. */
  open(ticket: RunTicket, scope: string, parent: string | undefined, limits: StoredLimits): Promise<BudgetState>;
  reserve(ticket: RunTicket, reservation: Reservation): Promise<ReserveAnswer>;
  /** Ends a reservation with what the call took; undefined: nobody knows, so the estimate stands. Once. */
  settle(id: string, actual: Amounts | undefined): Promise<void>;
  /** Settles, at their estimate, the reservations of runs that are gone; says whether there were any. */
  sweep(scopes: readonly string[]): Promise<boolean>;
  read(scope: string): Promise<BudgetState | undefined>;
}

/** How a step reaches the budgets of the scopes it runs in. */
export interface Purse {
  /** Holds the amounts back, or says which limit is in the way. Waits where calls under way may yet leave enough. */
  hold(
    id: string,
    of: { stepKey: string | undefined; attempt: number },
    request: Amounts,
  ): Promise<Exceeded | undefined>;
  /** Undefined: nobody knows what it took, so the estimate stands. */
  settle(id: string, actual: Amounts | undefined): Promise<void>;
  /** Leaves because of a limit: by a pause, or by an error where the caller wants one. */
  refuse(exceeded: Exceeded, kind: "llm" | "tool"): never;
}

const NANO_PER_USD = 1e9;
/** Past this, nano-dollars are no whole numbers in JavaScript; nobody means it. */
const MAX_USD = 9_000_000;

/** @throws InvalidOptionError that names the limit, for NaN, negatives, fractions of a call, text, and unknown names. */
export function checkBudget(what: string, budget: unknown): asserts budget is Budget {
  if (typeof budget !== "object" || budget === null) {
    throw new InvalidOptionError(`Expected \`budget\` of ${what} to be an object such as { usd: 5 }.`);
  }
  knownOptions(`\`budget\` of ${what}`, budget, ["usd", "tokens", "modelCalls", "toolCalls", "deadline", "onExceeded"]);
  const { usd, deadline, onExceeded } = budget as Record<string, unknown>;
  if (usd !== undefined && !(typeof usd === "number" && usd >= 0 && usd <= MAX_USD)) {
    throw new InvalidOptionError(
      `Expected \`budget.usd\` of ${what} to be dollars from 0 to ${MAX_USD}, got ${String(usd)}.`,
    );
  }
  for (const name of ["tokens", "modelCalls", "toolCalls"] as const) {
    const value: unknown = (budget as Record<string, unknown>)[name];
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0)) continue;
    throw new InvalidOptionError(
      `Expected \`budget.${name}\` of ${what} to be a whole number, 0 or more, got ${String(value)}.`,
    );
  }
  if (deadline !== undefined && !(deadline instanceof Date && Number.isFinite(deadline.getTime()))) {
    throw new InvalidOptionError(`Expected \`budget.deadline\` of ${what} to be a Date.`);
  }
  if (onExceeded !== undefined && onExceeded !== "pause" && onExceeded !== "fail") {
    throw new InvalidOptionError(
      `Expected \`budget.onExceeded\` of ${what} to be "pause" or "fail", got ${JSON.stringify(onExceeded)}.`,
    );
  }
}

export function storedLimits({ usd, tokens, modelCalls, toolCalls, deadline }: Limits): StoredLimits {
  return { nanoUsd: usd === undefined ? undefined : nanoUsdOf(usd), tokens, modelCalls, toolCalls, deadline };
}

/** Dollars as a person writes them, to whole nano-dollars. */
export function nanoUsdOf(usd: number): bigint {
  return BigInt(Math.round(usd * NANO_PER_USD));
}

/** What a recorded call took. Without a known price its dollars count as reserved for it. */
export function amountsOf(usage: Usage, reserved: Amounts): Amounts {
  return {
    nanoUsd: usage.costNanoUsd ?? reserved.nanoUsd,
    tokens: usage.inputTokens + usage.outputTokens,
    modelCalls: 1,
    toolCalls: 0,
  };
}

/** How much of the scarcest limit is left, from 1 to 0; 1 without limits. */
export function remainingRatio({ allowed, spent, reserved }: BudgetState): number {
  const ratio = (limit: bigint | number | undefined, used: bigint | number) =>
    limit === undefined ? 1 : Number(limit) === 0 ? 0 : Math.max(0, 1 - Number(used) / Number(limit));
  return Math.min(
    ratio(allowed.nanoUsd, spent.nanoUsd + reserved.nanoUsd),
    ratio(allowed.tokens, spent.tokens + reserved.tokens),
    ratio(allowed.modelCalls, spent.modelCalls + reserved.modelCalls),
    ratio(allowed.toolCalls, spent.toolCalls + reserved.toolCalls),
  );
}
