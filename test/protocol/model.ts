// The model-based test: fast-check draws lists of numbers, each list is one exploration, and a list that breaks a law is
// made as short as it can be. Reproduce one by its seed and path: LONGHAUL_MODEL_SEED, LONGHAUL_MODEL_PATH. The seed is
// the same every time, so that a change is not blamed for what chance finds; LONGHAUL_MODEL_SEED=random looks elsewhere.
import fc from "fast-check";
import type { TestDatabase } from "../support/database.js";
import { Exploration } from "./explorer.js";

const seed = process.env["LONGHAUL_MODEL_SEED"] ?? "7301";
const path = process.env["LONGHAUL_MODEL_PATH"];

export interface Explored {
  readonly explorations: number;
  readonly actions: number;
}

/** Explores for that long, or until a law is broken. */
export async function explore(db: TestDatabase, forMs: number): Promise<Explored> {
  // Nothing here depends on what a crash of PostgreSQL would lose, and the disk is the slowest part.
  await db.sql(`alter database ${new URL(db.url).pathname.slice(1)} set synchronous_commit = off`);
  const ledger = db.openLedger({ maxConnections: 2 });
  const sum = { explorations: 0, actions: 0 };
  // Without its bias towards small numbers, which would draw the first action again and again.
  const choices = fc.noBias(fc.array(fc.nat({ max: 1_000_000 }), { minLength: 2, maxLength: 80, size: "max" }));
  await fc.assert(
    fc.asyncProperty(choices, async (numbers) => {
      const exploration = await Exploration.run(ledger, `model-${++sum.explorations}`, numbers);
      sum.actions += exploration.trace.length;
    }),
    {
      numRuns: 1_000_000,
      interruptAfterTimeLimit: forMs,
      ...(seed === "random" ? {} : { seed: Number(seed) }),
      ...(path === undefined ? {} : { path }),
    },
  );
  return sum;
}
