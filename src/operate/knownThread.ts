// A misspelt thread has nothing to settle or undo: to say that all is done would be a lie.

import { NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { listThreads } from "../postgres/runs.js";

/** Refuses the name of a thread that the ledger does not know. */
export async function assertKnown(database: PooledDatabase, threadId: string): Promise<void> {
  const [thread] = await listThreads(database, { threadId: checkId("threadId", threadId), limit: 1 });
  if (thread === undefined) throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
}
