// Ids that a person has typed the beginning of: which ones it can mean.
import type { Database } from "./pool.js";
import { hexToBytes } from "./stepRows.js";

export interface Candidate {
  readonly id: string;
  /** What it is the id of, for who must choose. */
  readonly of: string;
}

/** More than that is no choice. */
const CHOICES = 6;

/** The requests for approval whose id begins so, the newest first. */
export function approvalsLike(database: Database, prefix: string): Promise<Candidate[]> {
  return database.query<Candidate>(
    "approvals_like",
    `select id, action || ', thread ' || thread_id || ', ' || status as of from {schema}.approvals
     where id >= $1::text and id <= $1 || repeat('f', 32) and starts_with(id, $1) order by seq desc limit ${CHOICES}`,
    [prefix],
  );
}

/** The steps whose key begins so, the newest first. */
export function stepsLike(database: Database, prefix: string): Promise<Candidate[]> {
  return database.query<Candidate>(
    "steps_like",
    `select encode(key, 'hex') as id, node || '/' || name || ', thread ' || thread_id || ', ' || state as of from {schema}.steps
     where key between $1::bytea and $2::bytea order by seq desc limit ${CHOICES}`,
    [hexToBytes(prefix.padEnd(64, "0")), hexToBytes(prefix.padEnd(64, "f"))],
  );
}
