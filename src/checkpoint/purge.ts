// The end of a thread's rows, checkpoints and ledger together: one transaction, so a kill at any moment leaves all or nothing.
import {
  deleteLedgerRows,
  expireThreads,
  type Hindrance,
  lockForDeletion,
  threadsToDelete,
} from "../postgres/deletions.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { finishIfFree } from "../postgres/runs.js";
import { type Send, sendOn } from "../postgres/send.js";
import { deleteUnreferenced } from "./unreferenced.js";

const CHECKPOINT_TABLES = ["checkpoint_writes", "checkpoint_blobs", "checkpoints"];

/** Removes every checkpoint of a thread that the transaction has locked. */
async function deleteCheckpoints(send: Send, threadId: string): Promise<void> {
  for (const table of CHECKPOINT_TABLES) await send(`delete from {schema}.${table} where thread_id = $1`, [threadId]);
  await deleteUnreferenced(send, threadId);
  // The new generation says from now on that nothing of before is there.
  await send("delete from {schema}.element_sweeps where thread_id = $1", [threadId]);
}

export type Purged = { readonly purged: true; readonly effectsKept: number } | ({ readonly purged: false } & Hindrance);

/** Deletes a thread whose deletion was asked for, unless something hinders it. */
export async function purgeThread(database: PooledDatabase, threadId: string): Promise<Purged> {
  // What was never sent is dropped, and what a dead process left open is in doubt.
  await finishIfFree(database, threadId);
  return database.transaction(async (client) => {
    const send = sendOn(client, database);
    const hindrance = await lockForDeletion(send, threadId);
    if (hindrance === "nobody asked") return { purged: true, effectsKept: 0 };
    if (hindrance !== undefined) return { purged: false, ...hindrance };
    await deleteCheckpoints(send, threadId);
    return { purged: true, effectsKept: await deleteLedgerRows(send, threadId) };
  });
}

/** A sweep deletes so many; the rest come with the next one. */
const AT_ONCE = 100;

/** Deletes the threads whose time is over, and those whose deletion had to wait and has not any more. Answers how many. */
export async function sweepDeletions(database: PooledDatabase): Promise<number> {
  await expireThreads(database);
  let deleted = 0;
  for (const threadId of await threadsToDelete(database, AT_ONCE)) {
    if ((await purgeThread(database, threadId)).purged) deleted++;
  }
  return deleted;
}
