// The step protocol under every interleaving that chance finds in minutes. What the laws are: laws.ts.
import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { explore } from "./model.js";

it("keeps its laws whatever crashes, waits, wakes up, gets lost or comes late, for three minutes", async () => {
  const db = await testDatabase();
  const { explorations, actions } = await explore(db, 180_000);
  process.stdout.write(`model: ${explorations} explorations, ${actions} actions, no law broken\n`);
  expect(explorations).toBeGreaterThan(0);
}, 400_000);
