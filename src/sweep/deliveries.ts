// Sending what the outbox holds, in a loop of its own: an endpoint that does not answer must not hold up deadlines.
import { type Delivered, deliverDue } from "../notify/deliver.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { startLoop } from "./loop.js";

export interface DeliveryOptions {
  readonly database: () => Promise<PooledDatabase>;
  readonly pollMs: number;
  readonly background: boolean;
  /** Told of what was not nothing. */
  readonly onDelivered: (delivered: Delivered) => void;
  readonly onError: (error: unknown) => void;
}

/** Returns what ends it: what is under way is broken off, and another process sends it. */
export function startDeliveries(options: DeliveryOptions): () => Promise<void> {
  const { database, pollMs, background, onDelivered, onError } = options;
  const stopping = new AbortController();
  const turn = async () => {
    const delivered = await deliverDue(await database(), stopping.signal);
    if (delivered.sent + delivered.failed + delivered.givenUp > 0) onDelivered(delivered);
    return undefined;
  };
  const loop = startLoop({ turn, pollMs, onError, background });
  return () => {
    stopping.abort();
    return loop.stop();
  };
}
