// Watches for the deadline of a run that is at work: calls under way are told when it is over. The ledger's clock decides,
// so the timer only asks it; and the deadline may have been moved meanwhile.
import { MAX_TIMER_MS } from "../../core/lease.js";

/** A timer may fire a little early. */
const AFTER_MS = 5;

export class DeadlineWatch {
  #timer: NodeJS.Timeout | undefined;
  /** It was seen ahead. A run that began after its deadline is refused its calls instead: it may have to wrap up. */
  #ahead = false;

  /**
   * @param ask has the ledger say how much is left, by `seen`
   * @param onOver called once
   */
  constructor(
    readonly ask: () => Promise<unknown>,
    readonly onOver: () => void,
  ) {}

  /** What the ledger says is left. Undefined: nothing is to be watched for. */
  seen(leftMs: number | undefined): void {
    clearTimeout(this.#timer);
    if (leftMs !== undefined && leftMs <= 0) {
      if (this.#ahead) this.onOver();
      this.#ahead = false;
      return;
    }
    this.#ahead = leftMs !== undefined;
    if (leftMs === undefined) return;
    // The next renewal of the lease asks too, where this is not answered.
    const ask = () => void this.ask().catch(() => undefined);
    this.#timer = setTimeout(ask, Math.min(leftMs + AFTER_MS, MAX_TIMER_MS)).unref();
  }

  stop(): void {
    this.#ahead = false;
    clearTimeout(this.#timer);
  }
}
