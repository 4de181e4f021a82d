// G13: the head is a row and the order is the database's. Workers whose clocks are 5 s apart carry a thread to its end,
// and none of them is stuck at, or runs again from, what the fast one stored. (At the saver: test/checkpoint/order.)
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";
import { stepsOf } from "./harness.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("G13: two workers and two clocks 5 s apart", () => {
  it("write each of a thread's effects once, and later workers find its end", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "clocks", shape: "three writes" } as const;
    const fast = await work({ ...task, input: "new", fails: "b" });
    expect(fast.error).toContain("fails in b");
    const slow = await work({ ...task, clockMs: -5_000 });
    expect(slow.log?.map((line) => line[0])).toEqual(["a", "b", "c"]);
    for (const clockMs of [0, -5_000]) expect((await work({ ...task, clockMs })).log).toEqual(slow.log);
    const nodes = ["node-a", "node-b", "node-c"].map((what) => world.count(what, "clocks"));
    expect(nodes).toEqual([1, 2, 1]);
    expect(world.count("pay", "clocks")).toBe(3);
    expect(await stepsOf(db, "clocks")).toMatchObject(["a", "b", "c"].map((name) => ({ name, state: "SUCCEEDED" })));
  });
});
