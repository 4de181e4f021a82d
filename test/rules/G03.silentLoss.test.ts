// G3, G21 and many workers: a worker that is stopped (SIGSTOP), overtaken, and wakes up. It claims nothing, records no
// failure, runs no error handler and leaves no trace; its success receipt is kept.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";
import { deferred, historyOf, later, stepsOf } from "./harness.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

/** Past the lease of a run and of a step. */
const LEASES_MS = 31_000;

/** A worker that is stopped while its payment is under way, and what its answer will be. */
async function stopped(thread: string, shape: "guarded" | "two writes", answer: "success" | "HTTP 500") {
  const paid = deferred();
  const gate = deferred();
  world.beforeAnswer = async (payment) => {
    if (payment.thread !== thread) return;
    world.beforeAnswer = () => {};
    paid.resolve();
    await gate.promise;
    if (answer === "HTTP 500") throw new Error("500");
  };
  const task = { url: db.url, worldUrl: world.url, thread, shape } as const;
  const late = startWorker({ ...task, input: "new" });
  await paid.promise;
  process.kill(late.pid, "SIGSTOP");
  // It stands in its socket when the worker wakes up.
  gate.resolve();
  await db.advance(LEASES_MS);
  const wake = () => {
    process.kill(late.pid, "SIGCONT");
    return late.result;
  };
  return { task, wake };
}

const everything = async (thread: string) => {
  const tables = ["checkpoints", "checkpoint_blobs", "checkpoint_writes", "heads"];
  const rows = tables.map((table) =>
    db.sql(`select to_jsonb(t) as row from longhaul.${table} t where thread_id = $1 order by 1`, [thread]),
  );
  return JSON.stringify(await Promise.all(rows));
};

describe("G3: a worker that wakes up after it was overtaken", () => {
  it.each(["success", "HTTP 500"] as const)(
    "with %s as its answer: drains, runs no error handler and no undo, and its checkpoints and writes are dropped",
    async (answer) => {
      const thread = `overtaken ${answer}`.replaceAll(" ", "-");
      const { task, wake } = await stopped(thread, "guarded", answer);
      const winner = await work(task);
      expect(winner.log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
      const before = await everything(thread);
      const history = await historyOf(db, thread);
      expect(await wake()).toMatchObject({ drain: { kind: "lost" } });
      expect(await everything(thread)).toBe(before);
      expect(await historyOf(db, thread)).toEqual(history);
      expect(await stepsOf(db, thread)).toMatchObject([{ state: "SUCCEEDED", doubt: false }]);
      const count = (what: string) => world.count(what, thread);
      expect(["pay", "node-z", "node-errorHandler", "node-undo"].map(count)).toEqual([1, 1, 0, 0]);
    },
  );

  it("cannot claim its next write; its receipt settles what nobody else could, and the next run goes on", async () => {
    const { task, wake } = await stopped("second-write", "two writes", "success");
    const cannotTell = { ...task, lookup: "cannot-tell" } as const;
    expect(await work(cannotTell)).toHaveProperty("__interrupt__");
    expect(await stepsOf(db, "second-write")).toMatchObject([{ name: "pay", state: "WAITING_HUMAN", doubt: true }]);
    expect(await wake()).toMatchObject({ drain: { kind: "lost" } });
    expect(await stepsOf(db, "second-write")).toMatchObject([{ name: "pay", state: "SUCCEEDED", doubt: false }]);
    expect(world.count("pay", "second-write")).toBe(1);
    expect((await work(cannotTell)).log).toHaveLength(2);
    expect(world.count("pay", "second-write")).toBe(2);
  });

  it("that was stopped between its claim and its call does not call: its lease is over", async () => {
    const thread = "before-the-call";
    const leaseMs = 1000;
    const task = { url: db.url, worldUrl: world.url, thread, shape: "guarded", leaseMs } as const;
    const late = startWorker({ ...task, input: "new", stopAfter: "lh_begin_write" });
    await expect.poll(async () => (await stepsOf(db, thread))[0]?.state, { timeout: 30_000 }).toBe("RUNNING");
    // Its own clock, too, must say that the lease is over.
    const overAt = later(leaseMs);
    await db.advance(LEASES_MS);
    expect((await work(task)).log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
    await overAt;
    process.kill(late.pid, "SIGCONT");
    expect(await late.result).toMatchObject({ drain: { kind: "lost" } });
    expect(world.count("pay", thread)).toBe(1);
  });
});
