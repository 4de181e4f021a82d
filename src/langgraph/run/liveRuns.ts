// The runs that are at work in this process, by ledger: so that a cancel made here reaches them at once, and so that a
// process which is to stop can let them come to a step's end.
import type { CancelRequest } from "../../core/cancel.js";
import type { Ledger } from "../ledger.js";

/** A run as its process sees it. */
export interface LiveRun {
  readonly threadId: string;
  cancel(request: CancelRequest): void;
  requestDrain(): void;
}

export class LiveRuns {
  readonly #runs = new Set<LiveRun>();
  #draining = false;
  #waiting: (() => void)[] = [];

  add(run: LiveRun): void {
    this.#runs.add(run);
    if (this.#draining) run.requestDrain();
  }

  delete(run: LiveRun): void {
    this.#runs.delete(run);
    if (this.#runs.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  cancel(threadId: string, request: CancelRequest): void {
    for (const run of this.#runs) if (run.threadId === threadId) run.cancel(request);
  }

  async drain(): Promise<void> {
    this.#draining = true;
    for (const run of this.#runs) run.requestDrain();
    if (this.#runs.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

const byLedger = new WeakMap<Ledger, LiveRuns>();

export function liveRunsOf(ledger: Ledger): LiveRuns {
  const runs = byLedger.get(ledger) ?? new LiveRuns();
  byLedger.set(ledger, runs);
  return runs;
}

/**
 * For a process that is to stop, such as on SIGTERM: has every run of the ledger in this process stop before its next step,
 * and resolves when all have given their threads free. Those are due at once, so that another worker goes on with them; what
 * was recorded is not done again. A call under way is waited for, as long as it takes. Runs that are started after this leave
 * before their first node. This is no cancel: `drainReason(error).kind` is `"shutdown"`.
 *
 * @example
 * process.once("SIGTERM", () => drain(ledger).then(() => ledger.close()));
 */
export function drain(ledger: Ledger): Promise<void> {
  return liveRunsOf(ledger).drain();
}
