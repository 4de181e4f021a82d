// Forking a thread: it goes on from a point of its past, beside what came after it.
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { graphOf } from "../langgraph/agent.js";
import type { Compiled } from "../langgraph/compiled.js";
import type { Ledger } from "../langgraph/ledger.js";
import { forkInDoubt } from "../langgraph/run/branch.js";
import { afterUpdate, ledgerOf } from "../langgraph/run/durableRun.js";
import { databaseOf } from "../openLedger.js";
import { recordFork, stepInDoubt } from "../postgres/forks.js";

export interface ForkRequest {
  readonly threadId: string;
  /** The point to go on from: a checkpoint of the thread's root graph, as `getStateHistory` and `longhaul fork <thread>` list them. */
  readonly checkpointId: string;
  /** Who forks; goes to the thread's history. */
  readonly by: string;
  /**
   * What the branch does with a write that another branch has done with the same input: ask a person, who reuses the result or
   * has it done again, or just do it again. @default what the graph was told, which is "ask" unless it says otherwise
   */
  readonly onFork?: "ask" | "run";
  /**
   * Whether a read or a model call whose input equals one that is recorded at the same place of the graph takes its result, or
   * is made anew. @default "none"
   */
  readonly reuse?: "none" | "equal-input";
}

export interface ForkAnswer {
  readonly threadId: string;
  /** Where the branch begins; it is the thread's head now. */
  readonly checkpointId: string;
  readonly from: string;
}

interface Forkable {
  readonly checkpointer: { getTuple(config: object): Promise<unknown> };
  updateState(config: object, values: null, asNode: string): Promise<{ configurable?: Record<string, unknown> }>;
}

/**
 * Makes a point of a thread's past its head again, without changing what came after it. Run the thread with `null` as input, or
 * edit it first with `updateState`. What ran before the point stays recorded and is not run again. After it every step is a new
 * one: approvals are asked again, writes get new keys, reads and model calls are made anew; a write that was done with the same
 * input asks a person first. The other branch stays in the history, and nothing of it is repeated or returned unasked.
 *
 * LangGraph's own ways do the same under the graph's own `onFork`: `updateState` at an older checkpoint, and `invoke` with its
 * `checkpoint_id`.
 *
 * @param graph the thread's durable graph
 * @throws NotFoundError for a thread or checkpoint that is not there, ThreadBusyError while a run has the thread,
 * OutcomeUnknownError while a write of it is in doubt.
 * @example
 * await fork(ledger, graph, { threadId: "trip-7", checkpointId, by: "ann", reuse: "equal-input" });
 * await graph.invoke(null, { configurable: { thread_id: "trip-7" } });
 */
export async function fork(ledger: Ledger, graph: object, request: ForkRequest): Promise<ForkAnswer> {
  knownOptions("fork", request, ["threadId", "checkpointId", "by", "onFork", "reuse"]);
  const threadId = checkId("threadId", request.threadId);
  const from = checkId("checkpointId", request.checkpointId);
  const by = checkId("by", request.by);
  const { onFork, reuse = "none" } = request;
  oneOf("onFork", onFork, ["ask", "run", undefined]);
  oneOf("reuse", reuse, ["none", "equal-input"]);
  if (ledgerOf(graph) !== ledger)
    throw new InvalidOptionError("Expected fork's graph to be a durable graph of this ledger.");
  const compiled = graphOf(graph) as Compiled as unknown as Forkable;
  const database = await databaseOf(ledger);
  const point = { thread_id: threadId, checkpoint_ns: "", checkpoint_id: from };
  if ((await compiled.checkpointer.getTuple({ configurable: point })) === undefined)
    throw new NotFoundError(
      `Thread "${threadId}" has no checkpoint ${from} to fork at. List them: longhaul fork ${threadId}`,
      { threadId },
    );
  const doubt = await stepInDoubt(database, threadId);
  if (doubt !== undefined) throw forkInDoubt(threadId, doubt);
  let checkpointId = "";
  // Noted while the thread is still held: no run begins on the branch before it is known what it does.
  const note = async (forked: { configurable?: Record<string, unknown> }) => {
    checkpointId = String(forked.configurable?.["checkpoint_id"]);
    await recordFork(database, { threadId, checkpointId, from, by, onFork, reuse: reuse === "equal-input" });
  };
  await afterUpdate.run(note, () => compiled.updateState({ configurable: point }, null, "__copy__"));
  return { threadId, checkpointId, from };
}

function oneOf(name: string, value: unknown, allowed: readonly unknown[]): void {
  if (allowed.includes(value)) return;
  const list = allowed.filter((one) => one !== undefined).join('" or "');
  throw new InvalidOptionError(`Expected \`${name}\` to be "${list}", got ${JSON.stringify(value)}.`);
}
