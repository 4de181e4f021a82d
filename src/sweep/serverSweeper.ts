// The sweeper that a server has by itself. A process that serves durable graphs without a worker, and without the inbox,
// would let every deadline pass: the first run there starts this, once a ledger. Scripts and tests have none.
import type { PooledDatabase } from "../postgres/pool.js";
import { startDeliveries } from "./deliveries.js";
import { startLoop } from "./loop.js";
import { sweepInTurn } from "./sweepDatabase.js";

/** A second of lateness is what the product promises. */
export const POLL_MS = 1_000;

export class ServerSweeper {
  #stop: (() => Promise<void>) | undefined;
  /** How many sweepers that somebody started himself are up. */
  #others = 0;
  #closed = false;

  constructor(readonly database: () => Promise<PooledDatabase>) {}

  get sweeping(): boolean {
    return this.#stop !== undefined;
  }

  /** Does not keep the process alive. */
  start(): void {
    if (this.#stop !== undefined || this.#others > 0 || this.#closed) return;
    const { database } = this;
    // The database may be away; the next turn tells.
    const parts = { pollMs: POLL_MS, background: true, onError: () => {} };
    const turn = async () => {
      await sweepInTurn(await database(), POLL_MS);
      return undefined;
    };
    const loop = startLoop({ ...parts, turn });
    const stopDeliveries = startDeliveries({ ...parts, database, onDelivered: () => {} });
    this.#stop = async () => {
      await Promise.all([loop.stop(), stopDeliveries()]);
    };
  }

  /** Another sweeper of this ledger is up, as long as what is returned is not called. */
  giveWay(): () => void {
    this.#others++;
    void this.#end();
    let back = false;
    return () => {
      if (!back) this.#others--;
      back = true;
    };
  }

  /** For good. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
  }

  async #end(): Promise<void> {
    const stop = this.#stop;
    this.#stop = undefined;
    await stop?.();
  }
}
