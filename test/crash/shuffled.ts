// The crash matrix itself is in this folder: a real process is killed at every point. Here each of those crashes is
// resumed many times, each time on a copy of what it left, with checkpoints and pending writes arriving in an order of
// chance.
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { openLedger } from "../../src/index.js";
import { copyDatabase, createDatabase } from "../support/database.js";
import { seededRandom, shufflingPool } from "../support/pools.js";
import { inParallel } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import { crashEverywhere, NAMES, POINTS, threadOf } from "./matrix.js";
import { paymentGraph } from "./paymentGraph.js";

/** What one resume of one crash came to. */
interface Outcome {
  readonly payments: number;
  readonly paidAgain: number;
  readonly log: readonly string[];
}

export function describeShuffledResumes(resumes: number): void {
  describe("DSE-02: a crash in the window between effect and record", () => {
    let crashed: string;
    let world: World;

    beforeAll(async () => {
      crashed = await createDatabase();
      world = await startWorld();
      await crashEverywhere(crashed, world, "lookup");
      await world.close();
    }, 180_000);

    it(`DSE-02: one call per effect at every point, however the ${resumes} resumes are shuffled`, async () => {
      const seeds = Array.from({ length: resumes }, (_, seed) => seed);
      const urls: string[] = [];
      for (const _ of seeds) urls.push(await copyDatabase(crashed));
      const outcomes = await inParallel(seeds, 2, (seed) => resumeShuffled(urls[seed] ?? "", seed));
      for (const point of NAMES) {
        const thread = threadOf(point);
        const paid = POINTS[point].left.payments;
        for (const outcome of outcomes) {
          const expected = {
            payments: 1,
            paidAgain: 1 - paid,
            log: ["page 1", "model 1", expect.stringMatching(/^po_/), "after"],
          };
          expect({ point, ...outcome.get(thread) }).toEqual({ point, ...expected });
        }
      }
    }, 120_000);

    async function resumeShuffled(url: string, seed: number): Promise<Map<string, Outcome>> {
      const copy = await startWorld(world.payments);
      const pool = new pg.Pool({ connectionString: url, max: 8 });
      pool.on("error", () => {});
      const ledger = openLedger({ pool: shufflingPool(pool, seededRandom(seed)) });
      const graph = paymentGraph(ledger, copy.url, "lookup");
      const resume = async (point: (typeof NAMES)[number]): Promise<[string, Outcome]> => {
        const thread = threadOf(point);
        // Unawaited: with "async" nothing in the graph waits for a checkpoint but the step that stands on it.
        const config = { configurable: { thread_id: thread }, durability: seed % 2 === 0 ? "async" : "sync" } as const;
        const { log } = await graph.invoke(null, config);
        return [thread, { payments: copy.paymentsOf(thread).length, paidAgain: copy.count("pay", thread), log }];
      };
      try {
        return new Map(await Promise.all(NAMES.map(resume)));
      } finally {
        await ledger.close();
        await pool.end();
        await copy.close();
      }
    }
  });
}
