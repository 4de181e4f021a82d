// Receipts that came after their step had been settled. One that differs from the recorded one is a second effect: it is
// kept, shown, and stays shown until a person has said that it is known (G21).
import { plainText } from "../core/failure.js";
import type { Database } from "./pool.js";
import { hexToBytes } from "./stepRows.js";

export interface DuplicateEffect {
  readonly key: string;
  readonly threadId: string;
  readonly node: string;
  readonly name: string;
  /** The attempt whose receipt came late. */
  readonly attempt: number;
  readonly at: Date;
}

const DUPLICATES = `
select encode(l.key, 'hex') as key, s.thread_id, s.node, s.name, l.attempt, l.at
from {schema}.late_receipts l join {schema}.steps s using (key)
where l.differs and l.acknowledged_by is null and ($2::text is null or s.thread_id = $2) order by l.at limit $1`;

interface DuplicateRow extends Omit<DuplicateEffect, "threadId"> {
  readonly thread_id: string;
}

/** Effects that happened twice, the oldest first; those of one thread when it is named. */
export async function duplicateEffects(
  database: Database,
  limit: number,
  threadId?: string,
): Promise<DuplicateEffect[]> {
  const rows = await database.query<DuplicateRow>("duplicates", DUPLICATES, [limit, threadId ?? null]);
  return rows.map(({ key, thread_id, node, name, attempt, at }) => ({
    key,
    threadId: thread_id,
    node,
    name,
    attempt,
    at,
  }));
}

const ACKNOWLEDGE = `
update {schema}.late_receipts l set acknowledged_by = $2, acknowledged_at = at.now, reason = $3
from (select {schema}.ledger_now() as now) at where l.key = $1 and l.differs and l.acknowledged_by is null returning 1`;

/** A person knows of the second effect and has dealt with it. False when there is none left to acknowledge. */
export async function acknowledgeDuplicates(
  database: Database,
  key: string,
  by: string,
  reason: string,
): Promise<boolean> {
  const rows = await database.query("acknowledge", ACKNOWLEDGE, [
    hexToBytes(key),
    plainText(by, 200),
    plainText(reason, 500),
  ]);
  return rows.length > 0;
}
