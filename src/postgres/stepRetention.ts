// Which steps a prune may remove (G24): those that no run can come back to, because the checkpoint under them is removed with
// them. Writes stay until their thread is final; what is open or in doubt stays, and keeps all checkpoints from its own on.
import type { Send } from "./send.js";

export interface PruneLock {
  /** A run has the thread that was sent to a checkpoint of its past, or the thread is being deleted: it is left alone. */
  readonly skip: boolean;
  /** It has come to its end, and has rested so long: nothing of it is to be done any more. */
  readonly final: boolean;
}

/** Of steps `s` that a run, a lookup or a person has to come back to. A read that a dead run left open is simply made again. */
export const OPEN_STEP = `(s.doubt_since is not null or s.state in ('READY', 'RETRY_SCHEDULED', 'WAITING_HUMAN', 'NEEDS_RECONCILIATION', 'COMPENSATING')
  or (s.state = 'RUNNING' and s.effect = 'write'))`;

// Shared: claims and checkpoints of a run that is at work go on. A run that starts waits, and then loads what is left.
const LOCK = `
select t.delete_requested_at is not null or (t.lease_until > at.now and t.holder ? 'addressed') as skip,
  t.state = 'done' and t.lease_until <= at.now and coalesce(t.updated_at < at.now - make_interval(secs => $2::bigint / 1000.0), false)
    -- An edit or a fork after its end gives it something to do again.
    and exists (select 1 from {schema}.heads h join {schema}.checkpoints c using (thread_id, checkpoint_ns, checkpoint_id)
      where h.thread_id = t.thread_id and h.checkpoint_ns = '' and c.metadata ->> 'source' = 'loop')
    and not exists (select 1 from {schema}.wakes w where w.thread_id = t.thread_id)
    and not exists (select 1 from {schema}.approvals a where a.thread_id = t.thread_id and a.status = 'pending')
    and not exists (select 1 from {schema}.steps s where s.thread_id = t.thread_id and ${OPEN_STEP}) as final
from {schema}.threads t, (select {schema}.ledger_now() as now) at where t.thread_id = $1::text for share of t`;

/** Locks the thread for the rest of the transaction. */
export async function lockForPrune(send: Send, threadId: string, olderThanMs: number | undefined): Promise<PruneLock> {
  const [row] = (await send(LOCK, [threadId, olderThanMs ?? null])).rows as PruneLock[];
  // A thread that only a checkpointer knows has no steps.
  return row ?? { skip: false, final: false };
}

/** A checkpoint that is removed. */
export interface GoneCheckpoint {
  readonly id: string;
  /** Every checkpoint that is left came after it. */
  readonly passed: boolean;
}

const GONE = "unnest($2::text[], $3::boolean[]) g (id, passed)";
// A business key stands at no position: any later run of the thread may come to it.
const AT_POSITION = "not starts_with(s.call_site, 'key:')";

const DELETE_READS = `
delete from {schema}.steps s using ${GONE}
where s.thread_id = $1 and s.checkpoint_id = g.id and s.effect = 'read' and ${AT_POSITION} returning s.key`;

const MARK_WRITES = `
update {schema}.steps s set base_pruned = case when g.passed then 'passed' else 'left' end from ${GONE}
where s.thread_id = $1 and s.checkpoint_id = g.id and s.effect = 'write' and ${AT_POSITION}`;

const DELETE_WRITES = `
delete from {schema}.steps s where s.thread_id = $1 and s.base_pruned is not null and not ${OPEN_STEP}
  and not exists (select 1 from {schema}.late_receipts l where l.key = s.key and l.differs and l.acknowledged_by is null)
returning s.key`;

const DELETE_HISTORY = ["step_changes", "late_receipts"].map(
  (table) => `delete from {schema}.${table} where key = any($1::bytea[])`,
);

/** Removes the steps that stood on the checkpoints, as far as they may go; answers how many. */
export async function pruneSteps(
  send: Send,
  threadId: string,
  gone: readonly GoneCheckpoint[],
  isFinal: boolean,
): Promise<number> {
  const values = [threadId, gone.map(({ id }) => id), gone.map(({ passed }) => passed)];
  const keys = keysOf(await send(DELETE_READS, values));
  await send(MARK_WRITES, values);
  if (isFinal) keys.push(...keysOf(await send(DELETE_WRITES, [threadId])));
  if (keys.length > 0) for (const text of DELETE_HISTORY) await send(text, [keys]);
  return keys.length;
}

function keysOf({ rows }: { rows: unknown[] }): Buffer[] {
  return (rows as { key: Buffer }[]).map(({ key }) => key);
}
