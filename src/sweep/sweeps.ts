// What is due by time alone and needs no graph. A sweep is safe to do by any number of processes at once, and answers how
// much it found. A new one is a line in the list.
import { sweepDeletions } from "../checkpoint/index.js";
import { sweepApprovals } from "../postgres/approvalTimes.js";
import { sweepDeadlines } from "../postgres/deadlines.js";
import { wakeDeadRuns } from "../postgres/due.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { sweepArtifactsOf } from "./artifacts.js";

export interface Sweep {
  /** As `longhaul worker --json` shows it. */
  readonly name: string;
  readonly sweep: (database: PooledDatabase) => Promise<number>;
}

/** Warnings, escalations and deadlines of requests for approval. */
async function sweepRequests(database: PooledDatabase): Promise<number> {
  const { expired, warned, escalated } = await sweepApprovals(database);
  return expired + warned + escalated;
}

/** Artifacts that nothing refers to, and half ones that nothing ever will. */
async function sweepArtifacts(database: PooledDatabase): Promise<number> {
  const { removed, emptied } = await sweepArtifactsOf(database);
  return Math.max(removed, emptied);
}

export const SWEEPS: readonly Sweep[] = [
  { name: "approvals", sweep: sweepRequests },
  { name: "deadRuns", sweep: wakeDeadRuns },
  { name: "deadlines", sweep: sweepDeadlines },
  { name: "deletions", sweep: sweepDeletions },
  // Last: a store may be slow.
  { name: "artifacts", sweep: sweepArtifacts },
];
