// Artifacts from outside a run, and their sweep.
import type { Artifacts } from "../core/artifact.js";
import { LEDGER_PARTS, type Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { type SweptArtifacts, sweepArtifactsOf } from "../sweep/artifacts.js";

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

/**
 * Removes what nothing refers to: artifacts whose threads were deleted, those that were put outside a run a day ago and handed to
 * no thread, and what uploads left that were cut off. Whoever sweeps does it by itself: a worker, `sweepHere`, a server. Safe at any
 * time, by any number of processes, while runs go on.
 *
 * @throws ArtifactError or DatabaseError when the store or the database is away; what was not removed is at the next sweep.
 */
export async function sweepArtifacts(ledger: Ledger): Promise<SweptArtifacts> {
  return sweepArtifactsOf(await databaseOf(ledger));
}
