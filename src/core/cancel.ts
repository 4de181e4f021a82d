// A cancel: somebody's word that a thread is to do nothing more. It is a fact in the ledger, which refuses every claim and
// every checkpoint from then on; the run that is at work learns it there, wherever it runs.
import { CancelledError } from "./errors.js";

export interface CancelRequest {
  readonly at: Date;
  readonly by: string;
  readonly reason: string | undefined;
}

/** The code of what a step failed with that a cancel ended before it was sent. */
export const RUN_CANCELLED = "RUN_CANCELLED";

/** What a run of a cancelled thread is refused with, or ends with. */
export function cancelledError(threadId: string, { at, by, reason }: CancelRequest): CancelledError {
  const why = reason === undefined ? "" : ` (${reason})`;
  return new CancelledError(
    `Thread "${threadId}" was cancelled by ${by} at ${at.toISOString()}${why}. It does nothing more until somebody lets it go on: longhaul redrive ${threadId} --by <who>`,
    { threadId },
  );
}
