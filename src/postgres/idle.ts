// What bringing a thread's checkpoints into another form needs of the ledger: that no run has it.
import { ThreadBusyError } from "../core/errors.js";
import type { Send } from "./send.js";

/**
 * Locks the thread against runs until the transaction ends.
 *
 * @throws ThreadBusyError while a run has it.
 */
export async function lockIdle(send: Send, threadId: string): Promise<void> {
  const { rows } = await send(
    "select t.lease_until > {schema}.ledger_now() as live from {schema}.threads t where t.thread_id = $1 for update of t",
    [threadId],
  );
  if ((rows as { live: boolean }[])[0]?.live !== true) return;
  throw new ThreadBusyError(`Thread "${threadId}" is being run. Export it when that run has ended.`, { threadId });
}
