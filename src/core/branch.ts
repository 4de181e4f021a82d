// A branch of a thread: a fork that somebody made, and what its runs do about what the branch it left has done.
import { announce, codecOf } from "./attempt.js";
import type { StepCall, StepHost } from "./call.js";

export interface Branch {
  /** Where it begins. */
  readonly checkpointId: string;
  /** About writes with equal inputs; undefined: as the graph says. */
  readonly onFork: "ask" | "run" | undefined;
  /** Recorded reads and model calls with equal inputs serve here too. */
  readonly reuse: boolean;
}

/** The recorded result of an equal read or model call of another branch, where the fork says that it serves. */
export async function reusedRead<O>(call: StepCall<O>, host: StepHost): Promise<{ value: O } | undefined> {
  const branch = await host.branch?.();
  if (branch?.reuse !== true) return undefined;
  const found = await host.ledger.reuseRead(host.ticket, call.intent);
  if (found === undefined) return undefined;
  if (!("output" in found)) host.refused(found);
  announce("replayed", call, host, undefined);
  return { value: codecOf(call).decode(found.output) as O };
}
