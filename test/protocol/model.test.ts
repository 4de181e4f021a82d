// The step protocol under every interleaving that chance finds in a quarter of a minute: model.full.test.ts takes longer.
import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { explore } from "./model.js";

it("keeps its laws whatever crashes, waits, wakes up, gets lost or comes late", async () => {
  const db = await testDatabase();
  const { explorations } = await explore(db, 15_000);
  expect(explorations).toBeGreaterThan(0);
}, 120_000);
