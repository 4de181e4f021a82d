// The requests for approval that a run has asked: other calls of the run must not take them, and those that no call comes back
// to leave the inbox.
import type { ApprovalLedger } from "../../core/approval.js";
import type { RunTicket } from "../../core/ledger.js";

export class AskedRequests {
  readonly #ids = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  add(id: string): void {
    this.#ids.add(id);
  }

  /** One request at a time: of two calls that ask at once neither may take what is the other's. */
  async inTurn<T>(ask: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(ask);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** The run is over. A ledger that cannot be reached keeps them for the next one. */
  async closeOthers(approvals: ApprovalLedger, ticket: RunTicket, isDone: boolean): Promise<void> {
    if (!isDone && this.#ids.size === 0) return;
    await approvals.closeUnasked(ticket, this.ids, isDone).catch(() => undefined);
  }
}
