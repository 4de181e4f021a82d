// Takes away artifacts that nothing refers to, and what uploads left that were cut off. Only from the stores that this process
// has: the others are emptied by those that have them.
import { abandonLocation, deadLocations, dropUnkept } from "../postgres/artifacts.js";
import type { PooledDatabase } from "../postgres/pool.js";

export interface SweptArtifacts {
  /** Artifacts that nothing referred to any more. */
  readonly removed: number;
  readonly removedBytes: number;
  /** Places in the store that were emptied: of those, and of uploads whose process died. */
  readonly emptied: number;
}

export async function sweepArtifactsOf(database: PooledDatabase): Promise<SweptArtifacts> {
  const { count: removed, bytes: removedBytes } = await dropUnkept(database);
  let emptied = 0;
  for (const store of database.artifactStores) {
    for (;;) {
      const locations = await deadLocations(database, store.kind);
      if (locations.length === 0) break;
      for (const location of locations) {
        // The bytes first, then the word that they are to go: after a death in between they are looked for once more.
        await store.remove(location);
        await abandonLocation(database, location);
        emptied++;
      }
    }
  }
  return { removed, removedBytes, emptied };
}
