// What a step is. The words of this package, in the order in which things happen:
//
//   thread       one conversation or task of LangGraph's, over all its runs
//   run          one stretch of work on a thread by one process, under the thread's lease
//   step         one operation that a thread meant to do: a read, a write, a model call
//   effect       what a step does to the world outside: `read` leaves it as it was, `write` changes it
//   key          the step's idempotency key: the same on every attempt, new on a fork
//   intent       the record, committed before a write or a model call is sent, that it is about to be
//   attempt      one try at a step, and its fencing token: it rises with every claim and never falls
//   receipt      the record, committed after, of what came back
//   replay       answering from the receipt instead of the world
//   doubt        an attempt may have reached the world and nobody knows: only evidence ends it
//   lookup       asking the world whether the effect happened; settle: recording the answer
//   lease        the time for which a holder may act; drift: another input at a known key
//
// The table below is the only list of allowed transitions; the ledger refuses every other one.

export type Effect = "read" | "write";
export type StepKind = "node" | "tool" | "llm";

export const STATES = [
  "READY",
  "RUNNING",
  "SUCCEEDED",
  "RETRY_SCHEDULED",
  "WAITING_HUMAN",
  "NEEDS_RECONCILIATION",
  "FAILED_PERMANENT",
  "COMPENSATING",
  "COMPENSATED",
  "CANCELLED",
] as const;
export type StepState = (typeof STATES)[number];

const TRANSITIONS: Readonly<Record<StepState, readonly StepState[]>> = {
  // READY and RETRY_SCHEDULED -> SUCCEEDED is a receipt that came late: a fact, whatever the step waits for (G21).
  READY: ["RUNNING", "SUCCEEDED", "CANCELLED"],
  // RUNNING -> RUNNING is a takeover: a model call, or a young idempotent write sent again with the same key.
  RUNNING: [
    "RUNNING",
    "SUCCEEDED",
    "READY",
    "RETRY_SCHEDULED",
    "WAITING_HUMAN",
    "NEEDS_RECONCILIATION",
    "FAILED_PERMANENT",
    "CANCELLED",
  ],
  RETRY_SCHEDULED: ["RUNNING", "SUCCEEDED", "CANCELLED"],
  WAITING_HUMAN: ["SUCCEEDED", "READY", "FAILED_PERMANENT", "CANCELLED"],
  // NEEDS_RECONCILIATION -> RUNNING is the resend of a young idempotent write.
  // NEEDS_RECONCILIATION -> itself is an answer of "not yet".
  NEEDS_RECONCILIATION: ["SUCCEEDED", "READY", "RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN", "FAILED_PERMANENT"],
  SUCCEEDED: ["COMPENSATING"],
  COMPENSATING: ["COMPENSATED"],
  COMPENSATED: [],
  FAILED_PERMANENT: ["READY"],
  // A cancel is lifted, as a failure is redriven.
  CANCELLED: ["READY"],
};

/** Whether a step may go from one state to another. `null` is "not yet recorded". */
export function mayTransition(from: StepState | null, to: StepState): boolean {
  if (from === null) return to === "RUNNING" || to === "SUCCEEDED" || to === "WAITING_HUMAN";
  return TRANSITIONS[from].includes(to);
}

/** Every state from which `to` may be reached. */
export function sourcesOf(to: StepState): readonly StepState[] {
  return STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/** A state that no run of the graph leaves by itself. A SUCCEEDED step may still be compensated. */
export function isFinal(state: StepState): boolean {
  return state === "SUCCEEDED" || state === "FAILED_PERMANENT" || state === "COMPENSATED" || state === "CANCELLED";
}

/** States in which a step may stand while it is in doubt (G9): no error and no cancel is a "no". */
export const STATES_IN_DOUBT: readonly StepState[] = ["RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN"];

/** Where in a graph a step stands; what its key is made of, and what a person reads. */
export interface StepPosition {
  readonly threadId: string;
  readonly node: string;
  /** LangGraph's task id: stable over resume, retry and kill -9; new on a fork. */
  readonly taskId: string;
  readonly checkpointNs: string;
  /** The base checkpoint that the task id was made from. */
  readonly checkpointId: string;
  readonly superstep: number;
}

/** What a model call used, as billed. Tokens; input includes cached input and cache writes, output includes reasoning. */
export interface Usage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Undefined when the model has no known price: never 0 for that. */
  readonly costNanoUsd: bigint | undefined;
  /** The provider did not report all of it: the tokens are a quarter of the characters, rounded up. */
  readonly estimated: boolean;
  /** The tool whose code made the call; left out for a node's own. */
  readonly tool?: string;
}
