// A background sweeper: it wakes the dead without a worker, takes turns with others, and keeps no process alive.
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type BackgroundSweeper, sweepHere, type Waker } from "../../src/worker/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { runScript } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
const sweepers: BackgroundSweeper[] = [];
afterEach(async () => {
  await Promise.all(sweepers.splice(0).map((sweeper) => sweeper.stop()));
});

const died = (threadId: string) =>
  db.sql(
    "insert into longhaul.threads (thread_id, epoch, lease_until, state, created_at, updated_at) values ($1, 1, now() - interval '1 s', 'running', now(), now())",
    [threadId],
  );
const wakes = (threadId: string) => db.sql("select reason from longhaul.wakes where thread_id = $1", [threadId]);

describe("sweepHere", () => {
  it("finds dead runs, once a ledger however often it is called", async () => {
    const ledger = db.openLedger();
    sweepers.push(sweepHere(ledger, { pollMs: 50 }));
    expect(sweepHere(ledger)).toBe(sweepers[0]);
    await died("dead");
    await expect.poll(() => wakes("dead")).toEqual([{ reason: "its run died" }]);
  });

  it("has what is due run by the waker that it is given", async () => {
    const woken: string[] = [];
    const waker: Waker = {
      name: "test",
      claimMs: 60_000,
      elsewhere: true,
      wake: async ({ threadId }) => {
        woken.push(threadId);
        return { to: "queued" };
      },
    };
    sweepers.push(sweepHere(db.openLedger(), { pollMs: 50, waker }));
    await died("served");
    await expect.poll(() => woken).toContain("served");
    // The wake stays until the run starts, and is claimed until then.
    expect(await wakes("served")).toHaveLength(1);
    // What is due later is woken by a later turn, which finds the first one claimed.
    await died("served later");
    await expect.poll(() => woken).toContain("served later");
    expect(woken.filter((threadId) => threadId === "served")).toEqual(["served"]);
  });

  it("outlives an error, and tells it", async () => {
    const errors: string[] = [];
    let broken = true;
    const waker: Waker = {
      name: "test",
      claimMs: 100,
      elsewhere: true,
      wake: async () => {
        if (broken) throw new Error("the server is away");
        return { to: "queued" };
      },
    };
    await db.sql("delete from longhaul.wakes");
    sweepers.push(sweepHere(db.openLedger(), { pollMs: 50, waker, onError: (error) => errors.push(String(error)) }));
    await died("unreached");
    await expect.poll(() => errors).toEqual(["Error: the server is away"]);
    broken = false;
    await expect
      .poll(() => db.sql("select tries from longhaul.wakes where thread_id = 'unreached'"))
      .toEqual([{ tries: 2 }]);
  });

  it("does not keep its process alive", async () => {
    const ended = await runScript("test/worker/sweeping.child.ts", [db.url]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.lines).toEqual([{ swept: true }]);
  });
});
