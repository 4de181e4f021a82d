// Artifacts from outside a run, and their sweep.
import type { Artifacts } from "./core/artifact.js";
import { LEDGER_PARTS, type Ledger } from "./langgraph/ledger.js";
import { databaseOf } from "./openLedger.js";
import { deadLocations, dropUnkept } from "./postgres/artifacts.js";

/**
 * Puts and opens artifacts outside a run. What is put here is kept for a day, and longer once a thread has its reference: hand it
 * to one as input, or to a step. In a node use `durable(runtime).artifacts`, in a step or tool `currentStep().artifacts`.
 *
 * @example
 * const video = await artifactsOf(ledger).put(createReadStream("talk.mp4"), { mediaType: "video/mp4" });
 * await graph.invoke({ video }, config);
 */
export function artifactsOf(ledger: Ledger): Artifacts {
  return ledger[LEDGER_PARTS].artifacts({});
}

export interface SweptArtifacts {
  /** Artifacts that nothing referred to any more. */
  readonly removed: number;
  readonly removedBytes: number;
  /** Places in the store that were emptied: of those, and of uploads whose process died. */
  readonly emptied: number;
}

/**
 * Removes what nothing refers to: artifacts whose threads were deleted, those that were put outside a run a day ago and handed to
 * no thread, and what uploads left that were cut off. Safe at any time, by any number of processes, while runs go on.
 *
 * @throws ArtifactError or DatabaseError when the store or the database is away; what was not removed is at the next sweep.
 */
export async function sweepArtifacts(ledger: Ledger): Promise<SweptArtifacts> {
  const database = await databaseOf(ledger);
  const { count: removed, bytes: removedBytes } = await dropUnkept(database);
  const { artifacts } = await ledger[LEDGER_PARTS].open();
  let emptied = 0;
  for (const { kind, remove } of artifacts.stores) {
    for (;;) {
      const locations = await deadLocations(database, kind);
      if (locations.length === 0) break;
      for (const location of locations) {
        // The bytes first, then the word that they are to go: after a death in between they are looked for once more.
        await remove(location);
        await artifacts.index.abandon(location);
        emptied++;
      }
    }
  }
  return { removed, removedBytes, emptied };
}
