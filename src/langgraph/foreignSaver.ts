// The durability barrier on a checkpointer that is not ours: all it can tell is whether a checkpoint can be read back.
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { DurabilityBarrierError } from "../core/errors.js";
import type { BoundSaver } from "./ledger.js";

/** First look soon, because a healthy put is done in milliseconds; then ease off. */
const FIRST_LOOK_MS = 5;
const LAST_LOOK_MS = 500;

/** Waits for checkpoints in a foreign saver by reading them back. */
export function foreignBarrier(saver: BaseCheckpointSaver): Pick<BoundSaver, "awaitStored"> {
  const stored = new Set<string>();
  return {
    async awaitStored(threadId, pairs, deadlineMs) {
      const until = performance.now() + deadlineMs;
      for (const [checkpoint_ns, checkpoint_id] of pairs) {
        const id = `${checkpoint_ns}\0${checkpoint_id}`;
        for (let waitMs = FIRST_LOOK_MS; !stored.has(id); waitMs = Math.min(waitMs * 2, LAST_LOOK_MS)) {
          const tuple = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns, checkpoint_id } });
          if (tuple !== undefined) {
            stored.add(id);
            break;
          }
          if (performance.now() > until) {
            throw new DurabilityBarrierError(
              `The checkpoint ${checkpoint_id} that this step stands on was not stored within ${deadlineMs} ms. Nothing was sent.`,
              { threadId },
            );
          }
          await new Promise((resolve) => setTimeout(resolve, waitMs));
        }
      }
    },
  };
}
