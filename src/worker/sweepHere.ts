// A sweeper in the background of a process that is up anyway, such as a web server: without it, and without a worker,
// nothing that is due would ever be done.
import { MAX_TIMER_MS, positiveMs } from "../core/lease.js";
import { knownOptions } from "../core/options.js";
import type { Ledger } from "../langgraph/ledger.js";
import { checkAddress, databaseOf, type OpenedLedger, SWEEPER } from "../openLedger.js";
import { POLL_MS } from "../sweep/serverSweeper.js";
import { DueLoop } from "./dueLoop.js";
import type { Waker, WorkerEvent } from "./waker.js";

export interface SweepHereOptions {
  /** Has due threads run as well, such as by `langgraphServerWaker()`. @default threads are left to workers */
  readonly waker?: Waker;
  /** Milliseconds. @default 1000 */
  readonly pollMs?: number;
  readonly onEvent?: (event: WorkerEvent) => void;
  /** @default errors are left out: the database may be away, and the next sweep will tell */
  readonly onError?: (error: unknown, threadId?: string) => void;
}

export interface BackgroundSweeper {
  stop(): Promise<void>;
}

const sweepers = new WeakMap<Ledger, BackgroundSweeper>();
const AT_ONCE = 32;

/**
 * Sweeps in the background of this process, about once a second in all however many processes do so. One sweeper a
 * ledger: a second call returns the first one. It does not keep the process alive.
 *
 * @throws DatabaseError at once, in production where nothing says where the database is: a server that is deployed so does
 * not start. A database that is away is no such error: it may be back.
 * @example
 * sweepHere(ledger);
 */
export function sweepHere(ledger: Ledger, options: SweepHereOptions = {}): BackgroundSweeper {
  knownOptions("sweepHere", options, ["waker", "pollMs", "onEvent", "onError"]);
  const { waker, pollMs = POLL_MS, onEvent = () => {}, onError = () => {} } = options;
  positiveMs("pollMs", pollMs, MAX_TIMER_MS);
  const running = sweepers.get(ledger);
  if (running !== undefined) return running;
  checkAddress(ledger);
  const host = { concurrency: 0, run: async () => ({ to: "busy" as const, againInMs: pollMs }), onError };
  const comeBack = (ledger as OpenedLedger)[SWEEPER].giveWay();
  let loop: DueLoop | undefined;
  let stopped = false;
  const started = (waker?.start?.(host) ?? Promise.resolve()).then(() => {
    if (stopped) return;
    const database = () => databaseOf(ledger);
    loop = new DueLoop({
      database,
      waker,
      host,
      graphs: undefined,
      pollMs,
      atOnce: AT_ONCE,
      background: true,
      onEvent,
    });
  }, onError);
  const sweeper: BackgroundSweeper = {
    stop: async () => {
      stopped = true;
      sweepers.delete(ledger);
      comeBack();
      await started;
      await loop?.stop();
      await waker?.stop?.();
      await waker?.close?.();
    },
  };
  sweepers.set(ledger, sweeper);
  return sweeper;
}
