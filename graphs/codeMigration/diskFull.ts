// A full disk is no fault of the step that meets it, and no retry of a second later helps: the step fails with words
// that say what to do, and `longhaul redrive` goes on from there.
import type { FailureClass } from "langgraph-longhaul";
import { GitError } from "./git.js";

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")) return true;
  return (
    error instanceof GitError &&
    /No space left on device|Disk quota exceeded|unable to write|write error/i.test(error.message)
  );
}

/** Nothing of a write is in the world yet: its objects may be, but no branch, file or name leads to them. */
export class NotApplied extends Error {
  override readonly name = "NotApplied";
  readonly diskFull: boolean;

  constructor(cause: unknown, directory: string) {
    const diskFull = isDiskFull(cause);
    const message = cause instanceof Error ? cause.message : String(cause);
    super(
      diskFull
        ? `There is no space left where the work tree is (${directory}), and nothing of this step was applied. Make room, lift the failure with "longhaul redrive", and run the thread again.`
        : message,
      { cause },
    );
    this.diskFull = diskFull;
  }
}

/** What was not applied is tried again, but for a full disk. */
export function classifyWrite(error: unknown): FailureClass | undefined {
  if (!(error instanceof NotApplied)) return undefined;
  return error.diskFull ? "permanent" : "transient-not-sent";
}
