// G2: a thread has one run at a time. (A claim, a put and an update that meet another run: test/cases/DSE-06,
// test/checkpoint/writers, test/langgraph/durableGraph.)
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { workTogether } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";
import { deferred, stepsOf } from "./harness.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("G2: one run at a time", () => {
  it("of four processes that start one thread at one moment, one runs and the others end before any node", async () => {
    const paid = deferred();
    const gate = deferred();
    world.beforeAnswer = async () => {
      paid.resolve();
      await gate.promise;
    };
    const task = { url: db.url, worldUrl: world.url, thread: "crowd", shape: "guarded", input: "new" } as const;
    const workers = await workTogether([task, task, task, task]);
    await paid.promise;
    let ended = 0;
    for (const { result } of workers) void result.then(() => ended++);
    // The run lasts until all the others have been turned away.
    await expect.poll(() => ended, { timeout: 30_000 }).toBe(3);
    gate.resolve();
    const results = await Promise.all(workers.map(({ result }) => result));
    expect(results.filter(({ drain }) => drain?.kind === "busy")).toHaveLength(3);
    expect(results.filter(({ log }) => log !== undefined)).toMatchObject([{ log: ["a", "pay po_1", "z"] }]);
    expect(["node-a", "pay", "node-z", "node-undo"].map((what) => world.count(what, "crowd"))).toEqual([1, 1, 1, 0]);
    expect(await stepsOf(db, "crowd")).toMatchObject([{ state: "SUCCEEDED", attempt: 1 }]);
  });
});
