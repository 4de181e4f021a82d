// What a thread may spend. Money is whole nano-dollars; nothing here is ever a float but the dollars that people write.
// Reserve before the call, settle after it: parallel branches and processes that only looked first would all pass.
import type { RunTicket } from "./ledger.js";
import type { Usage } from "./step.js";

/** Each is optional and exact; undefined is no limit, and 0 blocks the first call. */
export interface Limits {
  /** Dollars, for models with a known price; a call of a model without one is refused. */
  readonly usd?: number;
  /** Input and output tokens of model calls. */
  readonly tokens?: number;
  readonly modelCalls?: number;
  readonly toolCalls?: number;
  /** Supersteps of the graph and of the graphs in it. One that a crash makes run again counts once. */
  readonly iterations?: number;
  /**
   * Milliseconds of work. Waiting for people, for a retry's time and for a provider's pause is none, and neither is the time
   * in which the machine slept. No call and no superstep starts past it; what is under way ends.
   */
  readonly activeMs?: number;
  /**
   * No call starts at or after this time, by the database's clock. A thread's own deadline also aborts what is under way, and
   * ends the wait of a thread that sleeps or waits for a person: then `onExceeded` says what becomes of it. (Who sweeps sees to
   * the sleeping ones: a worker, the inbox, a server.)
   */
  readonly deadline?: Date;
}

/**
 * What a refused call does. `pause` asks a person by an interrupt, and the thread goes on once the limit is raised; `fail`
 * throws BudgetExceededError; `finish` ends the work with what there is.
 */
export type OnExceeded = "pause" | "fail" | "finish";

/**
 * The end of a thread that `onExceeded: "finish"` goes to, and what of the limits is kept back for it. From there on
 * `iterations`, `activeMs` and the thread's `deadline` do not hold.
 */
export interface WrapUp extends Omit<Limits, "deadline" | "iterations" | "activeMs"> {
  /** A node of the graph. A refused call ends its node without an update, and this one comes next. */
  readonly node: string;
}

export interface Budget extends Limits {
  /**
   * Of a scope within another it holds for every call in it, whichever limit refuses the call. A tool call never fails: its
   * error would become a message, and the model would call again; it pauses.
   * @default that of the scope around it, else "pause"
   */
  readonly onExceeded?: OnExceeded;
}

/** The budget of a thread. */
export interface ThreadBudget extends Budget {
  /** Wanted by `onExceeded: "finish"`. */
  readonly wrapUp?: WrapUp;
  /** Milliseconds without a call that begins or ends, waits left out: then the run is stopped, as `onExceeded` says. */
  readonly idleMs?: number;
  /** Whether new input to the thread begins to count anew. @default "thread" */
  readonly per?: "thread" | "run";
}

/** The budget of a part of a thread: at most what is left around it. */
export interface ScopeBudget extends Budget {
  /** A part of what is left around the scope when it first opens, from 0 to 1, of every limit there. */
  readonly share?: number;
}

export const LIMIT_NAMES = ["usd", "tokens", "modelCalls", "toolCalls", "iterations", "activeMs"] as const;

export type LimitName = (typeof LIMIT_NAMES)[number] | "deadline";

/** What a call is expected to take, or took. */
export interface Amounts {
  readonly nanoUsd: bigint;
  readonly tokens: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
}

export const NOTHING: Amounts = { nanoUsd: 0n, tokens: 0, modelCalls: 0, toolCalls: 0 };

/** All that a scope counts. */
export interface Totals extends Amounts {
  readonly iterations: number;
  readonly activeMs: number;
}

/** Limits as the ledger keeps them. */
export type StoredLimits = { readonly [Name in keyof Totals]: Totals[Name] | undefined } & {
  readonly deadline: Date | undefined;
};

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
  /** What of it is kept back for the wrap-up. */
  readonly kept: Amounts;
  readonly wrappingUp: boolean;
  /** A call in it was refused since its limits were last raised. */
  readonly exceeded: boolean;
  readonly spent: Totals;
  readonly reserved: Amounts;
  readonly suspendedMs: number;
}

/** What a budget did to its thread. */
export interface BudgetEvent {
  readonly scope: string;
  readonly kind: "degraded" | "restored" | "suspended";
  readonly detail: object;
}

/** How a scope is opened. */
export interface ScopeTerms {
  readonly scope: string;
  readonly parent: string | undefined;
  readonly limits: StoredLimits;
  readonly kept: Amounts;
  /** The limits hold as they were given when the scope first opened: a share is taken once. */
  readonly once: boolean;
  /** The thread has new input: what it was refused, and what it wrapped up, is over. */
  readonly newInput: boolean;
  /** Counts from nothing again. */
  readonly anew: boolean;
  /** What a refused call does. */
  readonly onExceeded?: OnExceeded | undefined;
}

/** A superstep of a graph, or of a graph in it. */
export interface Superstep {
  readonly threadId: string;
  readonly checkpointNs: string;
  readonly superstep: number;
}

/** The port to budgets. Every call is one transaction; sums never pass a limit, whoever calls at once. */
export interface BudgetLedger {
  /** Makes the scope or gives it the code's limits; what people raised stays. Settles what dead runs had reserved. */
  open(ticket: RunTicket, terms: ScopeTerms): Promise<BudgetState>;
  reserve(ticket: RunTicket, reservation: Reservation): Promise<ReserveAnswer>;
  /** Ends a reservation with what the call took; undefined: nobody knows, so the estimate stands. Once. */
  settle(id: string, actual: Amounts | undefined): Promise<void>;
  /** Counts a superstep, once, or says which limit is in its way. */
  beginSuperstep(superstep: Superstep, scopes: readonly string[]): Promise<Exceeded | undefined>;
  /** What the scope has worked and been suspended in all; it never gets less. */
  recordTime(scope: string, activeMs: number, suspendedMs: number): Promise<void>;
  /** From now on what was kept back may be spent. */
  beginWrapUp(scope: string): Promise<void>;
  /** Notes in the innermost scope's history that a call was refused, and marks all of them. */
  noteExceeded(scopes: readonly string[], exceeded: Exceeded): Promise<void>;
  /** Notes it in the scope's history; the same thing said twice in a row is noted once. */
  note(event: BudgetEvent): Promise<void>;
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
  /** Leaves because of a limit: as the scope wants it. */
  refuse(exceeded: Exceeded, kind: "llm" | "tool"): never;
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
