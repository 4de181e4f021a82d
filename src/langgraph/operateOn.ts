// Work on a thread from outside its graph, under the thread's lease: no run can start meanwhile.
import type { StepHost } from "../core/call.js";
import type { Effects } from "../core/effect.js";
import { InvalidOptionError, OutcomeUnknownError, ThreadBusyError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import type { Ledger } from "./ledger.js";
import { settingsOf } from "./run/durableRun.js";
import { Run, type ThreadEnd } from "./run/run.js";
import { hostAt } from "./runtime.js";

/** Takes the thread, works on it with the effects that the graph declares, and gives it free. */
export async function operateOn<T>(
  ledger: Ledger,
  graph: object,
  threadId: string,
  work: (host: StepHost, effects: Effects) => Promise<{ result: T; leaves?: ThreadEnd }>,
): Promise<T> {
  const settings = settingsOf(graph);
  if (settings === undefined) throw new InvalidOptionError("Expected a graph that durableGraph made.");
  const run = await Run.start(ledger, checkId("threadId", threadId), "update");
  if ("busyUntil" in run) {
    throw new ThreadBusyError(`Thread "${threadId}" is being run by ${run.by}. Cancel that run or wait for its end.`, {
      threadId,
    });
  }
  try {
    const { result, leaves } = await work(outsideHost(run, threadId), settings.effects);
    run.leaves = leaves;
    return result;
  } finally {
    await run.end();
  }
}

/** No graph is there to be left: what a person must answer is an error that says so. */
function outsideHost(run: Run, threadId: string): StepHost {
  const position = { threadId, node: "", taskId: "", checkpointNs: "", checkpointId: "", superstep: 0 };
  return {
    ...hostAt({ run, position, bases: [], signal: run.signal, purse: undefined }),
    pause: ([first]) => {
      throw new OutcomeUnknownError(
        first?.question.message ?? "",
        first?.record.key ?? "",
        first?.record.attempt ?? 0,
        { threadId },
      );
    },
  };
}
