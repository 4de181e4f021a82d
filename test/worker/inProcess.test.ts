// `longhaul worker` as processes that are killed and stopped. Effects are counted in the world outside.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import { cliWorkers, dueThreads, graphFile, holdPayment, stateOf } from "./processes.js";

let db: TestDatabase;
let world: World;
let workers: ReturnType<typeof cliWorkers>;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
  workers = cliWorkers(db, world);
});
afterEach(() => workers.killAll());
afterAll(() => world.close());

describe("longhaul worker", () => {
  it("is killed with SIGKILL in the middle of a write: another worker takes the thread over, and nothing is paid twice", async () => {
    await dueThreads(db, world, ["killed"]);
    const happened = holdPayment(world, "killed", 2);
    const first = workers.start("--graph", graphFile());
    await happened;
    const second = workers.start("--graph", graphFile());
    await expect.poll(() => second.events.length, { timeout: 20_000 }).toBeGreaterThan(0);
    first.child.kill("SIGKILL");
    await expect.poll(() => second.of("killed").at(-1), { timeout: 30_000 }).toBe("done");
    expect(second.events).toContainEqual(
      expect.objectContaining({ event: "swept", found: expect.objectContaining({ deadRuns: 1 }) }),
    );
    expect([world.count("pay", "killed"), await stateOf(db, "killed")]).toEqual([3, "done"]);
    expect(await db.sql("select thread_id from longhaul.wakes")).toEqual([]);
  });

  it("shares threads with other workers: each runs once", async () => {
    const threads = Array.from({ length: 24 }, (_, i) => `shared-${i}`);
    await dueThreads(db, world, threads);
    const both = [workers.start("--graph", graphFile()), workers.start("--graph", graphFile())];
    const done = () => threads.filter((threadId) => both.some((worker) => worker.of(threadId).includes("done")));
    await expect.poll(() => done().length, { timeout: 30_000 }).toBe(threads.length);
    expect(threads.map((threadId) => world.count("pay", threadId))).toEqual(threads.map(() => 3));
    expect(both.flatMap(({ events }) => events.filter(({ event }) => event === "failed"))).toEqual([]);
  });

  it("ends in order on SIGTERM: the superstep under way is finished, the rest is another worker's", async () => {
    await dueThreads(db, world, ["terminated"]);
    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      world.beforeAnswer = ({ thread }) => {
        if (thread !== "terminated" || world.paymentsOf(thread).length !== 1) return;
        resolve();
        return new Promise((answer) => {
          letGo = answer;
        });
      };
    });
    const first = workers.start("--graph", graphFile());
    await held;
    first.child.kill("SIGTERM");
    const waiting = () => db.sql("select reason from longhaul.wakes where thread_id = 'terminated'");
    await expect.poll(waiting, { timeout: 10_000 }).toEqual([{ reason: "its worker was stopped" }]);
    letGo();
    expect(await first.ended).toMatchObject({ code: 0, stderr: "" });
    expect(first.of("terminated")).toEqual(["woke", "left"]);
    expect([world.count("pay", "terminated"), await stateOf(db, "terminated")]).toEqual([1, "due"]);
    const second = workers.start("--graph", graphFile());
    await expect.poll(() => second.of("terminated").at(-1), { timeout: 20_000 }).toBe("done");
    expect(world.count("pay", "terminated")).toBe(3);
  });

  it.each([
    [["--graph", "./nowhere.js:graph"], 1, /nowhere/],
    [[], 2, /--graph/],
    [["--waker", "carrier-pigeon"], 2, /./],
    [["--waker", "langgraph-server"], 2, /--server/],
    [["--server", "http://127.0.0.1:1"], 2, /langgraph-server/],
  ])("refuses what it cannot work with: %j", async (argv, code, message) => {
    const ended = await longhaul(db.url, "worker", ...argv);
    expect(ended.code).toBe(code);
    expect(JSON.stringify(ended.lines) + ended.stderr).toMatch(message);
  });
});
