// One call of one step, and what the core needs from the graph runtime around it. Types alone: the ways through them are
// in execute.ts.
import type { Artifacts } from "./artifact.js";
import type { Branch } from "./branch.js";
import type { CallBreaker } from "./breaker.js";
import type { Amounts, Purse } from "./budget.js";
import type { Codec } from "./codec.js";
import type { StepContext } from "./context.js";
import type { Refused, RunTicket, StepEvent, StepIntent, StepLedger, StepRecord } from "./ledger.js";
import type { Lookup } from "./lookup.js";
import type { Classifier, RetryPolicy } from "./retry.js";
import type { Usage } from "./step.js";

/** One call of one step. */
export interface StepCall<O> {
  readonly intent: StepIntent;
  readonly run: (context: StepContext) => Promise<O>;
  readonly lookup?: Lookup | undefined;
  /** The provider deduplicates by key for as long as `intent.keyLifetimeMs`. */
  readonly idempotent?: boolean;
  /** Undoes another step: allowed on a thread that is closed to writes. */
  readonly undo?: boolean;
  /** What a fork does with a write that the branch it left has done. @default "ask" */
  readonly onFork?: "ask" | "run" | undefined;
  readonly retry?: RetryPolicy | undefined;
  readonly breaker?: CallBreaker | undefined;
  readonly classify?: Classifier | undefined;
  readonly onUnknown?: "pause" | "throw" | undefined;
  readonly codec?: Codec;
  /** Brings the output of an older version into the form of this one. */
  readonly migrateOutput?: ((output: unknown, from: string) => Promise<O>) | undefined;
  readonly usageOf?: (output: O) => Usage | undefined;
  /** What the call may take, where limits count it. */
  readonly spends?: (() => Promise<Amounts>) | undefined;
  readonly about?: CallFacts | undefined;
}

/** What is known of a call before it is made, for whoever watches it. */
export interface CallFacts {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly toolCallId?: string | undefined;
}

/** What the core needs from the graph runtime around it. */
export interface StepHost {
  readonly ledger: StepLedger;
  readonly ticket: RunTicket;
  /** Aborted by cancel and by losing the thread; no step starts after that (G12). */
  readonly signal: AbortSignal;
  /** The claimed steps that this run has open, by key. */
  readonly open: Map<string, Promise<unknown>>;
  /** Resolves when every checkpoint that this position stands on is stored (G5). */
  barrier(): Promise<void>;
  /** How a recorded step's place relates to this one: on the way here, on it but edited since, or on another branch. */
  relationTo(record: StepRecord): Promise<"passed" | "edited" | "forked">;
  /**
   * With a checkpointer that has no guard against a second writer: the write claimed last, when this place does not
   * descend from it, because an overtaken run's checkpoint has become the newest one (G7).
   */
  overtakenWrite(): Promise<StepRecord | undefined>;
  /** The fork that this place descends from. */
  branch?(): Promise<Branch | undefined>;
  /** Leaves the graph until a person has answered. */
  pause(asked: readonly Asked[]): never;
  /** Waits for a time, in the process when it is near, else leaves the graph until then. */
  waitUntil(dueAt: Date, reason: string, key: string): Promise<void>;
  /** Leaves the graph because this run has lost its thread, or was cancelled. */
  refused(why: Refused): never;
  /** Throws when the run was lost or aborted. */
  assertLive(): void;
  isControlFlow(error: unknown): boolean;
  /** Whether this run may try anything again; each yes counts against its total. */
  mayRetry(): boolean;
  /** The artifacts of the thread, for as long as the signal lets. */
  artifacts(signal: AbortSignal): Artifacts;
  /** Undefined when nothing limits what the thread spends. */
  readonly purse?: Purse | undefined;
  onStep?: ((event: StepEvent) => void) | undefined;
  /** Watches a step from around it: performs it, and returns or throws what that comes to. */
  watch?<O>(call: StepCall<O>, perform: (call: StepCall<O>) => Promise<O>): Promise<O>;
}

/** A step, and what a person must say about it. */
export interface Asked {
  readonly record: StepRecord;
  readonly question: PauseQuestion;
}

export interface PauseQuestion {
  readonly kind: "NEEDS_RECONCILIATION" | "INPUT_DRIFT" | "SIBLING_EFFECT";
  readonly message: string;
  readonly inputHash?: string;
}
