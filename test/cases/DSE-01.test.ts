// All durations of the case divided by one factor: a lease of 60 s, a call of 240 s, a second worker at 185 s.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

const FACTOR = 40;
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

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

describe("DSE-01: a call that lasts four leases", () => {
  it("DSE-01: is one effect, although a second worker comes for the thread meanwhile", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "long", shape: "guarded", leaseMs: LEASE_MS } as const;
    let second: ReturnType<typeof work> | undefined;
    world.beforeAnswer = async () => {
      await later(SECOND_WORKER_AT_MS);
      second = work(task);
      await Promise.all([later(ANSWERS_AT_MS - SECOND_WORKER_AT_MS), second]);
    };
    const first = await work({ ...task, input: "new" });
    expect(first.log).toEqual(["a", "pay po_1", "z"]);
    expect(await second).toMatchObject({ drain: { kind: "busy" } });
    expect(world.count("pay", "long")).toBe(1);
    const [step] = await db.sql("select state, attempt from longhaul.steps where thread_id = 'long'");
    expect(step).toEqual({ state: "SUCCEEDED", attempt: 1 });
  });

  it("DSE-01: after the lease was lost, the second worker asks the world by a GET instead of posting again", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "lost", shape: "guarded", leaseMs: LEASE_MS } as const;
    const first = startWorker({ ...task, input: "new" });
    const arrived = new Promise<void>((resolve) => {
      world.beforeAnswer = async () => {
        resolve();
        await first.ended;
      };
    });
    await arrived;
    process.kill(first.pid, "SIGSTOP");
    // Past the lease of the run by the database's clock, and past that of the step.
    await db.advance(31_000);
    expect((await work(task)).log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
    expect([world.count("pay", "lost"), world.count("lookup", "lost")]).toEqual([1, 1]);
    first.child.kill("SIGKILL");
    await first.ended;
  });
});
