// What code at a place leaves the graph with. An error that must end the run is no business of the code around it: a ToolNode
// would make a message of it that the model answers, a node's errorHandler a success.
import { ToolDriftError } from "../core/errors.js";
import { isUnrecorded } from "./leave.js";
import type { Place } from "./place.js";

/** The error itself, or what passes through all code in its place. */
export function leftBy({ run }: Place, error: unknown): unknown {
  if (run.lost !== undefined) return run.leave();
  if (isUnrecorded(error)) return run.unrecorded(error);
  if (!(error instanceof ToolDriftError)) return error;
  run.stop(error);
  return run.leave();
}
