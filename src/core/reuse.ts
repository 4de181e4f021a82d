// Reads and model calls of a branch that takes the recorded results of another one.
import { announce, codecOf } from "./attempt.js";
import type { StepCall, StepHost } from "./call.js";

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
