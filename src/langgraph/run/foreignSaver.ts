// What a checkpointer that is not ours can tell: whether a checkpoint can be read back, and what it was made from.
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { DurabilityBarrierError } from "../../core/errors.js";
import type { CheckpointKnowledge } from "../ledger.js";

/** First look soon, because a healthy put is done in milliseconds; then ease off. */
const FIRST_LOOK_MS = 5;
const LAST_LOOK_MS = 500;

/** A history longer than this between two equal writes is walked no further: they are taken for two branches. */
const LONGEST_WALK = 500;

/** Asks a foreign saver by reading checkpoints, one at a time. */
export function foreignKnowledge(saver: BaseCheckpointSaver): CheckpointKnowledge {
  const stored = new Set<string>();
  const read = (thread_id: string, checkpoint_ns: string, checkpoint_id: string) =>
    saver.getTuple({ configurable: { thread_id, checkpoint_ns, checkpoint_id } });
  return {
    async parentsOf(threadId, ns, id) {
      return (await read(threadId, ns, id))?.metadata?.parents;
    },
    async sourceAfter(threadId, ns, ancestorId, id) {
      let source: string | undefined;
      let at: string | undefined = id;
      for (let walked = 0; at !== undefined && walked < LONGEST_WALK; walked++) {
        if (at === ancestorId) return source;
        const tuple = await read(threadId, ns, at);
        source = tuple?.metadata?.source;
        at = tuple?.parentConfig?.configurable?.["checkpoint_id"];
      }
      return undefined;
    },
    async awaitStored(threadId, pairs, deadlineMs) {
      const until = performance.now() + deadlineMs;
      for (const [checkpoint_ns, checkpoint_id] of pairs) {
        const id = `${checkpoint_ns}\0${checkpoint_id}`;
        for (let waitMs = FIRST_LOOK_MS; !stored.has(id); waitMs = Math.min(waitMs * 2, LAST_LOOK_MS)) {
          const tuple = await read(threadId, checkpoint_ns, checkpoint_id);
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
