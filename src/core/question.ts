// What a step that waits for a person's word asks them.
import type { StepRecord } from "./ledger.js";
import { SEVERAL } from "./lookup.js";

/**
 * `outcome`: did it happen; `output`: it did, and its output could not be stored; `several`: its lookup found it more than
 * once; `drift`: another input came to its key; `sibling`: another branch of the thread has done it.
 */
export type OpenQuestion = "drift" | "output" | "outcome" | "several" | "sibling";

export function questionOf(step: StepRecord): OpenQuestion {
  if (step.failure?.code === SEVERAL) return "several";
  if (step.siblingKey !== undefined && step.attempt === 0) return "sibling";
  if (step.drift !== undefined && step.drift.decision === undefined) return "drift";
  return step.effectKnown ? "output" : "outcome";
}
