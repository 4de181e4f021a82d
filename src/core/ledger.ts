// The port through which the core reaches a ledger, and the laws that every ledger must obey:
//
//   1. A call returns only after its change is durable, or throws and may have changed nothing or everything (then
//      the caller asks again with the same claim id, and the answer is the same).
//   2. Every change of a step is a compare-and-set on its state and attempt, within the transition table of step.ts,
//      and appends to the step's history in the same transaction.
//   3. A claim checks in its own transaction that the caller still holds the thread's lease (G2), and that nobody has
//      cancelled the run.
//   4. Time is the ledger's own: leases, due times and settle times never depend on a worker's clock.
//   5. While a step is in doubt it can be neither READY, nor FAILED_PERMANENT, nor CANCELLED (G9).
//   6. What needs a wake writes the wake in the same transaction (G15).
import type { Branch } from "./branch.js";
import type { Breakers } from "./breaker.js";
import type { CancelRequest } from "./cancel.js";
import type { RecordedFailure } from "./errors.js";
import type { StoredOutput } from "./outputs.js";
import type { Effect, StepKind, StepPosition, StepState, Usage } from "./step.js";

/** The thread's lease as a claim presents it. */
export interface RunTicket {
  readonly threadId: string;
  readonly generation: number;
  readonly epoch: bigint;
}

/** A step that is about to be claimed or recorded. */
export interface StepIntent {
  readonly key: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly version: string | undefined;
  readonly callSite: string;
  readonly position: StepPosition;
  readonly inputHash: string;
  /** Canonical JSON; undefined for model calls, whose messages are in the checkpoint already. */
  readonly input: string | undefined;
  readonly timeoutMs: number;
  readonly settleMs: number;
  readonly keyLifetimeMs: number | undefined;
  readonly leaseMs: number;
  /** Equal for writes that would do the same at the same place of the graph; undefined where that does not matter. */
  readonly likeness?: bigint | undefined;
}

/** Proof that an attempt is ours. */
export interface Claim {
  readonly key: string;
  readonly attempt: number;
  readonly claimId: string;
  /** An earlier attempt may have had its effect: no error of this one is a "no" (G9). */
  readonly inDoubt: boolean;
  /** How many attempts failed before this one. */
  readonly failures: number;
}

export interface StepRecord {
  readonly key: string;
  readonly state: StepState;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly version: string | undefined;
  readonly position: StepPosition;
  readonly attempt: number;
  readonly claimId: string | undefined;
  readonly failures: number;
  readonly lookups: number;
  readonly inputHash: string;
  readonly input: string | undefined;
  readonly output: StoredOutput | undefined;
  readonly failure: RecordedFailure | undefined;
  readonly usage: Usage | undefined;
  /** Since when an attempt may have had an effect that nobody knows of. */
  readonly doubtSince: Date | undefined;
  /** The first send that no evidence has settled yet: the age of the provider's key counts from here (G10). */
  readonly firstUnresolvedSendAt: Date | undefined;
  /** From when on "it did not happen" can be believed (G1). */
  readonly settledFrom: Date | undefined;
  /** The write succeeded, but its output could not be stored. */
  readonly effectKnown: boolean;
  readonly leaseLive: boolean;
  readonly leaseUntil: Date | undefined;
  readonly dueAt: Date | undefined;
  /** An input that came to this key and is not the recorded one, and what a person said about it. */
  readonly drift: { readonly inputHash: string; readonly decision: "keep" | "fail" | undefined } | undefined;
  /** The write on another branch that a person is asked about. */
  readonly siblingKey: string | undefined;
  /** A prune has removed the checkpoint under it, and every one that is left came after it. */
  readonly passed: boolean;
  /** The ledger's clock when this was read. */
  readonly readAt: Date;
}

/** What came of an attempt. */
export type Outcome =
  | { readonly to: "SUCCEEDED"; readonly output: string; readonly usage: Usage | undefined }
  | {
      readonly to: "READY";
      readonly reason: string;
      readonly failure?: RecordedFailure;
      /** All its tries are used up: the next run has as many again. */
      readonly givenUp?: true;
    }
  | {
      readonly to: "RETRY_SCHEDULED";
      readonly dueInMs: number;
      readonly failure: RecordedFailure | undefined;
      /** How many failures the attempt stands for. @default 1 with a failure, 0 without */
      readonly failures?: number;
    }
  | {
      readonly to: "NEEDS_RECONCILIATION";
      readonly failure: RecordedFailure | undefined;
      readonly effectKnown?: boolean;
      readonly dueInMs?: number;
    }
  | { readonly to: "FAILED_PERMANENT"; readonly failure: RecordedFailure };

/** A change that evidence or a person makes to a step that nobody is running. */
export interface Settlement {
  readonly to: StepState;
  readonly actor: string;
  readonly reason: string;
  readonly output?: string;
  readonly failure?: RecordedFailure;
  /** The state stays; ask the world again then. */
  readonly dueInMs?: number;
  readonly countLookup?: boolean;
  /** The thread should run again because of this. */
  readonly wake?: boolean;
}

/** A write of a task, as an earlier run recorded it. */
export interface EarlierWrite {
  readonly key: string;
  readonly name: string;
  readonly callSite: string;
  readonly inputHash: string;
}

export interface BeginOptions {
  /** Claim although other branches have a step that is alike. */
  readonly alikeAllowed?: boolean;
  /** An undo, which a thread takes that is closed to writes. */
  readonly undo?: boolean;
}

export type BeginAnswer =
  | { readonly claim: Claim }
  | { readonly existing: StepRecord }
  /** Other branches of the thread did this, or may have; nothing was claimed. */
  | { readonly alike: readonly string[] }
  /** The thread is being undone: it takes no new write. */
  | { readonly closed: true }
  | Refused;

/** The run may do nothing more: the thread is another's, or was cancelled. */
export type Refused = { readonly lost: "lease" } | { readonly cancelled: CancelRequest };

/** A write that may have happened. */
export interface StepInDoubt {
  readonly key: string;
  readonly node: string;
  readonly name: string;
  readonly attempt: number;
}

export interface StepLedger {
  readonly namespace: string;
  readonly breakers: Breakers;
  now(): Promise<Date>;
  find(key: string): Promise<StepRecord | undefined>;
  /** What is recorded of a read that is about to be made; refused when the thread was cancelled. */
  findRead(ticket: RunTicket, key: string): Promise<{ readonly existing: StepRecord | undefined } | Refused>;
  /** Writes the intent of a step that is not recorded yet, as its first attempt; else tells what is recorded. */
  begin(ticket: RunTicket, intent: StepIntent, claimId: string, options?: BeginOptions): Promise<BeginAnswer>;
  /** Records the step as waiting for a person, who says whether `siblingKey`'s result is reused. */
  beginWaiting(ticket: RunTicket, intent: StepIntent, siblingKey: string): Promise<Refused | undefined>;
  /** Claims a recorded step again. The intent's input replaces the recorded one (only ever before any send). */
  claimAgain(
    ticket: RunTicket,
    seen: StepRecord,
    intent: StepIntent,
    claimId: string,
    reason: string,
    options?: BeginOptions,
  ): Promise<BeginAnswer>;
  /** Ends our attempt. "fenced": the attempt is no longer ours. */
  record(claim: Claim, outcome: Outcome): Promise<"recorded" | "fenced">;
  /** Stores a read and its result at once; answers with what is stored, which an earlier record wins. */
  recordRead(
    ticket: RunTicket,
    intent: StepIntent,
    output: string,
    tookMs: number,
  ): Promise<{ output: string } | Refused>;
  /** Records a read or a model call with the result of an equal one at the same place of the graph, when there is one. */
  reuseRead(ticket: RunTicket, intent: StepIntent): Promise<{ output: string } | Refused | undefined>;
  /** A success that came after its attempt was fenced or given up: a fact, accepted unless the step is final (G21). */
  recordLateSuccess(claim: Claim, output: string): Promise<"accepted" | "kept as evidence">;
  /** Compare-and-set by something that holds no claim. False when the step has moved on. */
  settle(seen: StepRecord, settlement: Settlement): Promise<boolean>;
  /** Notes an input that is not the recorded one, and that a person is asked about it; undefined when it is gone again. */
  noteDrift(seen: StepRecord, inputHash: string | undefined): Promise<void>;
  renew(claim: Claim, leaseMs: number): Promise<boolean>;
  /** The write of a thread that was claimed last. */
  lastWrite(threadId: string): Promise<StepRecord | undefined>;
  /** A write of a thread that may have happened. */
  inDoubt(threadId: string): Promise<StepInDoubt | undefined>;
  /** Writes of a task that an earlier run recorded, and that have happened or may have: of the node's own code, not of tools. */
  earlierWrites(ticket: RunTicket, checkpointNs: string): Promise<readonly EarlierWrite[]>;
  /** Every step of a thread, in the order in which they were first recorded. */
  steps(threadId: string): Promise<readonly StepRecord[]>;
  /** Keeps for the thread the artifacts that a text names, such as an input that no step has taken yet. */
  keepNamed(ticket: RunTicket, text: string): Promise<void>;
  /** Closes a thread for new writes, so that what is undone stays undone (G23). */
  closeToWrites(ticket: RunTicket): Promise<void>;
}

/** What a listener is told after a step's commit. */
export interface StepEvent {
  readonly type: "recorded" | "replayed";
  readonly threadId: string;
  readonly key: string;
  readonly node: string;
  readonly name: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly inputHash: string;
  readonly usage: Usage | undefined;
}

/** Why a run ended, as the ledger keeps it. */
export type RunEnd = "waiting" | "due" | "done" | "failed" | "cancelled";

/** What a lease is taken for: to run the graph, or to change its state from outside. */
export type RunPurpose = "run" | "update";

/** What a run is a run of. */
export interface RunOf {
  /** The name of its graph, by which a worker finds the code again. */
  readonly graph: string | undefined;
  /** The outermost thread that it runs inside of: that one is woken in its place. */
  readonly rootThread?: string | undefined;
  /** The thread in whose run it is. */
  readonly parentThread?: string | undefined;
  /** How long the thread is kept after its end; undefined: as before. */
  readonly ttlMs?: number | undefined;
  /** It was sent to a checkpoint that may be in the thread's past. */
  readonly addressed?: boolean;
  /** It goes on with what is there, and begins nothing: it does not take a thread that was deleted. */
  readonly goesOn?: boolean;
}

export type AcquireAnswer =
  | { readonly ticket: RunTicket; readonly tookOver: boolean; readonly ordered: boolean; readonly forked: boolean }
  /** Somebody cancelled the thread: nothing is run on it. */
  | { readonly cancelled: CancelRequest }
  /** Somebody deleted the thread: there is nothing to go on with. */
  | { readonly deleted: { readonly at: Date; readonly by: string } }
  | {
      readonly busy: {
        readonly leaseUntil: Date;
        readonly leftMs: number;
        readonly host: string;
        readonly pid: number;
      };
    };

/** What a run learns when it renews its lease. */
export interface Renewed {
  readonly cancelled: CancelRequest | undefined;
  /** Until the deadline of the thread's own budget, by the ledger's clock; undefined without one, and once it wraps up. */
  readonly deadlineInMs: number | undefined;
}

/** The port for whole runs: the lease of a thread, and what wakes it again. */
export interface RunLedger {
  /** Takes the thread's lease or says who has it. Starting a run clears the thread's wake; an update leaves it. */
  acquire(threadId: string, runId: string, leaseMs: number, purpose: RunPurpose, of?: RunOf): Promise<AcquireAnswer>;
  /** False when the lease is over or another's. The answer is how a run learns that it is to stop. */
  renew(ticket: RunTicket, leaseMs: number): Promise<false | Renewed>;
  /** Whether somebody has cancelled the run. */
  cancelOf(ticket: RunTicket): Promise<CancelRequest | undefined>;
  /**
   * Gives the thread free. Without `end` the thread is left in the state it had before. A thread that was cancelled is then
   * cancelled, unless its graph had come to its end. With `wake` it is due at once.
   */
  release(ticket: RunTicket, end: RunEnd | undefined, failure?: RecordedFailure, wake?: string): Promise<void>;
  /** The thread's forks, the newest first. */
  forks(threadId: string): Promise<readonly Branch[]>;
  /** The input that the thread was ordered with. */
  orderedInput(threadId: string): Promise<{ readonly input: string; readonly inputHash: string } | undefined>;
  /** The thread should run again from then on. */
  wake(threadId: string, dueAt: Date, reason: string): Promise<void>;
}
