// What a run is given: new input, nothing, or answers; and what of it is refused or left out before the first node.
import { Command, isCommand } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { NotFoundError, StaleWriterError } from "../../core/errors.js";
import { isApprovalValue } from "../approval/approvalInterrupt.js";
import type { Compiled, RunOptions } from "../compiled.js";
import type { Run } from "./run.js";

/** Whether the thread is given something to do, and not told to go on. */
export function isNewInput(input: unknown): boolean {
  if (input === null || input === undefined) return false;
  return !isCommand(input) || input.resume === undefined;
}

/** What the thread is given from outside may name artifacts: they are the thread's from then on, whenever it looks at them. */
export async function keepNamed(run: Run, given: unknown): Promise<void> {
  let text: string | undefined;
  try {
    text = JSON.stringify(given);
  } catch {
    // A value that JSON does not know is no input that names an artifact, which is plain data.
  }
  if (text?.includes("sha256:")) await run.steps.keepNamed(run.ticket, text);
}

/**
 * A resume value answers the question that the thread asks now. Taken at an older checkpoint it would answer one that
 * was answered before, under the same task id (G18).
 */
export async function refuseResumeOffHead(
  graph: Compiled,
  input: unknown,
  options: RunOptions | undefined,
  threadId: string,
): Promise<void> {
  const addressed: unknown = options?.configurable?.["checkpoint_id"];
  if (!isCommand(input) || input.resume === undefined || input.resume === null || addressed === undefined) return;
  const saver = graph.checkpointer as BaseCheckpointSaver;
  const head = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
  if (head === undefined || head.checkpoint.id === addressed) return;
  throw new StaleWriterError(
    `A Command with a resume value addresses the checkpoint ${String(addressed)}, but thread "${threadId}" is at ${head.checkpoint.id}. ` +
      "Leave `checkpoint_id` out to answer what the thread asks now, or fork with updateState first.",
    { threadId },
  );
}

/** `null` goes on with a thread; one that died before its first checkpoint has to be given its input again. */
export async function refuseNothingToGoOn(
  graph: Compiled,
  input: unknown,
  options: RunOptions | undefined,
  threadId: string,
): Promise<void> {
  if (input !== null && input !== undefined) return;
  const saver = graph.checkpointer as BaseCheckpointSaver;
  const address = { thread_id: threadId, checkpoint_ns: "", checkpoint_id: options?.configurable?.["checkpoint_id"] };
  if ((await saver.getTuple({ configurable: address })) !== undefined) return;
  throw new NotFoundError(
    `Thread "${threadId}" has no checkpoint to go on from: it never started, or died before its first one. Give it its input.`,
    { threadId },
  );
}

/** Questions of ours: their answers are in the ledger. */
const OUR_QUESTIONS = new Set(["NEEDS_RECONCILIATION", "INPUT_DRIFT", "SIBLING_EFFECT"]);

/**
 * A resume value while the thread asks nothing but what the ledger answers: LangGraph would keep it for the next
 * `interrupt()`, and a question would be answered that was never shown. The thread goes on without it.
 */
export async function withoutStrayResume(
  graph: Compiled,
  input: unknown,
  options: RunOptions | undefined,
  threadId: string,
): Promise<unknown> {
  if (!isCommand(input) || input.resume === undefined || input.resume === null) return input;
  if (options?.configurable?.["checkpoint_id"] !== undefined) return input;
  const saver = graph.checkpointer as BaseCheckpointSaver;
  const head = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
  const questions = (head?.pendingWrites ?? [])
    .filter(([, channel]) => channel === "__interrupt__")
    .flatMap(([, , value]) => value);
  if (!questions.every(isOurs)) return input;
  const { update, goto } = input;
  const more = update !== undefined || (Array.isArray(goto) ? goto.length > 0 : goto !== undefined);
  return more
    ? new Command({ ...(update === undefined ? {} : { update }), ...(goto === undefined ? {} : { goto }) })
    : null;
}

function isOurs(interrupt: unknown): boolean {
  const value = (interrupt as { value?: { kind?: unknown; idempotencyKey?: unknown } } | undefined)?.value;
  if (value?.kind === "BUDGET_EXCEEDED" || isApprovalValue(value)) return true;
  return typeof value?.kind === "string" && OUR_QUESTIONS.has(value.kind) && typeof value.idempotencyKey === "string";
}
