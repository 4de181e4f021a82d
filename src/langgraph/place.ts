// Where in a running graph some code runs.
import type { StepScope } from "../core/context.js";
import type { StepPosition } from "../core/step.js";
import type { RunPurse } from "./budget/runPurse.js";
import type { Run } from "./run/run.js";

/** Where in a run a model or tool call is made. */
export interface CallPlace {
  readonly scope: StepScope;
  /** Distinguishes the tools that one ToolNode runs side by side in one task. */
  readonly toolCallId: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The budget that pays there; undefined: the thread's. */
  readonly purse?: RunPurse | undefined;
  /** The callback run is the node's own: with it the attempt ends. */
  readonly isNode?: true;
}

/** A place in a running graph. */
export interface Place {
  readonly run: Run;
  readonly position: StepPosition;
  /** Every (namespace, checkpoint id) that the position was made from; empty when it cannot be seen. */
  readonly bases: readonly (readonly [string, string])[];
  readonly signal: AbortSignal;
  /** The budget that pays here; undefined when nothing limits it. */
  readonly purse: RunPurse | undefined;
  /** LangGraph gave it another identity than on the attempt before, under which a write would happen twice (G4). */
  readonly moved?: boolean;
  /** Whether a question of `interrupt()` stands unanswered here. */
  readonly unanswered?: () => boolean;
}
