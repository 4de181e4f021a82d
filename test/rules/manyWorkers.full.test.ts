// DSE-01 in slower time: all durations divided by 5, so that the lease of the step itself (30 s, not divided) runs out
// within the call unless it is renewed.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";
import { later } from "./harness.js";

const FACTOR = 5;
const LEASE_MS = 60_000 / FACTOR;
const ANSWERS_AT_MS = 240_000 / FACTOR;
const SECOND_WORKER_AT_MS = 185_000 / FACTOR;

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("many workers: leases by database time, renewed while a call is open", () => {
  it("a call of 240 s with a second worker at 185 s is one effect, and both leases were renewed", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "long", shape: "guarded", leaseMs: LEASE_MS } as const;
    const leases = () =>
      db.sql<{ run: Date; step: Date }>(
        `select t.lease_until as run, s.lease_until as step from longhaul.threads t join longhaul.steps s using (thread_id)
         where thread_id = 'long'`,
      );
    const seen: { run: Date; step: Date }[] = [];
    world.beforeAnswer = async () => {
      seen.push(...(await leases()));
      await later(SECOND_WORKER_AT_MS);
      seen.push(...(await leases()));
      const second = await work(task);
      expect(second).toMatchObject({ drain: { kind: "busy" } });
      await later(ANSWERS_AT_MS - SECOND_WORKER_AT_MS);
    };
    expect((await work({ ...task, input: "new" })).log).toEqual(["a", "pay po_1", "z"]);
    expect(world.count("pay", "long")).toBe(1);
    const [first, last] = seen;
    for (const lease of ["run", "step"] as const)
      expect((last?.[lease].getTime() ?? 0) - (first?.[lease].getTime() ?? 0)).toBeGreaterThan(SECOND_WORKER_AT_MS / 2);
    const [step] = await db.sql("select state, attempt from longhaul.steps where thread_id = 'long'");
    expect(step).toEqual({ state: "SUCCEEDED", attempt: 1 });
  }, 180_000);
});
