// Sending what the outbox holds, in a loop of its own: an endpoint that does not answer must not hold up deadlines.
import { deliverDue } from "../notify/deliver.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { startLoop } from "./loop.js";
import type { WorkerEvent } from "./waker.js";

export interface DeliveryOptions {
  readonly database: () => Promise<PooledDatabase>;
  readonly pollMs: number;
  readonly background: boolean;
  readonly onEvent: (event: WorkerEvent) => void;
  readonly onError: (error: unknown) => void;
}

/** Returns what ends it: what is under way is broken off, and another process sends it. */
export function startDeliveries(options: DeliveryOptions): () => Promise<void> {
  const { database, pollMs, background, onEvent, onError } = options;
  const stopping = new AbortController();
  const turn = async () => {
    const { sent, failed, givenUp } = await deliverDue(await database(), stopping.signal);
    if (sent + failed + givenUp > 0) onEvent({ type: "swept", found: { sent, failed, givenUp } });
    return undefined;
  };
  const loop = startLoop({ turn, pollMs, onError, background });
  return () => {
    stopping.abort();
    return loop.stop();
  };
}
