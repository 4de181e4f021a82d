// Keeping tables small: old checkpoints go, and the steps that no run can come back to.
import { pruneThread, threadsToPrune } from "../checkpoint/index.js";
import { InvalidOptionError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";

export interface PruneRequest {
  /** How many checkpoints of each thread stay whatever their age. @default 1 */
  readonly keepLast?: number;
  /** Only what is older goes. Milliseconds. @default any age; one of the two must be given */
  readonly olderThanMs?: number;
  /** This thread alone. @default all threads */
  readonly threadId?: string;
  /** Removes nothing, and tells what would go. @default false */
  readonly dryRun?: boolean;
}

export interface PruneReport {
  /** Threads of which something went. */
  readonly threads: number;
  readonly checkpoints: number;
  readonly steps: number;
  /** Of checkpoints, their values and pending writes, as they were stored. */
  readonly bytes: number;
  /** Threads that were left alone: a run was sent to their past at this moment, or they are being deleted. */
  readonly skipped: readonly string[];
}

/** Threads are looked up in portions, so that their ids need not stand in memory together. */
const PORTION = 500;

/**
 * Removes old checkpoints of threads, with what hangs on them alone. Works while runs go on, in any number of processes; a kill
 * leaves each thread as before or after. What a thread can go on from, replay or fork afterwards has all it needs:
 *
 * - of each thread the newest `keepLast` checkpoints stay, those younger than `olderThanMs`, the head, and everything from the
 *   oldest step on that is open, waits for a person or is in doubt;
 * - reads and model calls go with the checkpoint under them; writes stay, to be undone and to be asked about, until the thread
 *   has come to its end and has rested for `olderThanMs`; steps under a business key always stay.
 *
 * PostgreSQL gives the space free for new rows by its own vacuum.
 *
 * @throws InvalidOptionError when neither limit is given, or one cannot be.
 * @example
 * await prune(ledger, { keepLast: 20, olderThanMs: 30 * 24 * 3600_000 });
 */
export async function prune(ledger: Ledger, request: PruneRequest): Promise<PruneReport> {
  knownOptions("prune", request, ["keepLast", "olderThanMs", "threadId", "dryRun"]);
  const { keepLast = 1, olderThanMs, dryRun = false } = request;
  if (request.keepLast === undefined && olderThanMs === undefined)
    throw new InvalidOptionError("Expected prune to be given `keepLast`, `olderThanMs` or both. Nothing was removed.");
  whole("keepLast", keepLast, 1);
  if (olderThanMs !== undefined) whole("olderThanMs", olderThanMs, 0);
  if (typeof dryRun !== "boolean") throw new InvalidOptionError("Expected `dryRun` to be a boolean.");
  const database = await databaseOf(ledger);
  const report = { threads: 0, checkpoints: 0, steps: 0, bytes: 0, skipped: [] as string[] };
  const visit = async (threadId: string) => {
    const { checkpoints, steps, bytes, skipped } = await pruneThread(database, threadId, {
      keepLast,
      olderThanMs,
      dryRun,
    });
    if (skipped) report.skipped.push(threadId);
    if (checkpoints + steps > 0) report.threads++;
    report.checkpoints += checkpoints;
    report.steps += steps;
    report.bytes += bytes;
  };
  if (request.threadId !== undefined) {
    await visit(checkId("threadId", request.threadId));
    return report;
  }
  for (let after = ""; ; ) {
    const threads = await threadsToPrune(database, after, keepLast, PORTION);
    for (const threadId of threads) await visit(threadId);
    const last = threads.at(-1);
    if (last === undefined || threads.length < PORTION) return report;
    after = last;
  }
}

function whole(name: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least) return;
  throw new InvalidOptionError(`Expected \`${name}\` to be a whole number of at least ${least}, got ${String(value)}.`);
}
