// Workers that share a pg-boss queue, as processes: one active job a thread, and a dead worker's job is taken over.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
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

const start = () => workers.start("--waker", "pg-boss", "--graph", graphFile());
const jobs = (threadId: string) =>
  db.sql<{ state: string }>("select state from pgboss.job where singleton_key = $1 order by created_on", [threadId]);

describe("longhaul worker --waker pg-boss", () => {
  it("takes over the job of a worker that was killed with SIGKILL, and nothing is paid twice", async () => {
    await dueThreads(db, world, ["killed"]);
    const happened = holdPayment(world, "killed", 2);
    const first = start();
    await happened;
    expect(await jobs("killed")).toEqual([{ state: "active" }]);
    const second = start();
    await expect.poll(() => second.events.length, { timeout: 20_000 }).toBeGreaterThan(0);
    first.child.kill("SIGKILL");
    await expect.poll(() => second.of("killed").at(-1), { timeout: 40_000 }).toBe("done");
    expect([world.count("pay", "killed"), await stateOf(db, "killed")]).toEqual([3, "done"]);
    await expect
      .poll(() => jobs("killed"), { timeout: 10_000 })
      .toEqual([{ state: "cancelled" }, { state: "completed" }]);
  }, 120_000);

  it("shares threads over its workers, each of which runs once, behind a thread that is stuck as well", async () => {
    const threads = Array.from({ length: 16 }, (_, i) => `shared-${i}`);
    await dueThreads(db, world, ["stuck", ...threads]);
    const stuck = holdPayment(world, "stuck", 1);
    const both = [start(), start()];
    await stuck;
    // A wake for a thread that is under way orders no second job of it.
    await db.sql(
      "insert into longhaul.wakes (thread_id, due_at, reason) values ('stuck', longhaul.ledger_now(), 'test')",
    );
    const done = () => threads.filter((threadId) => both.some((worker) => worker.of(threadId).includes("done")));
    await expect.poll(() => done().length, { timeout: 60_000 }).toBe(threads.length);
    expect(threads.map((threadId) => world.count("pay", threadId))).toEqual(threads.map(() => 3));
    expect(await jobs("stuck")).toEqual([{ state: "active" }]);
    const several = await db.sql(
      "select singleton_key from pgboss.job where state = 'active' group by 1 having count(*) > 1",
    );
    expect(several).toEqual([]);
  }, 120_000);

  it("ends in order on SIGTERM, and another worker goes on", async () => {
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
    const first = start();
    await held;
    first.child.kill("SIGTERM");
    const waiting = () => db.sql("select reason from longhaul.wakes where thread_id = 'terminated'");
    await expect.poll(waiting, { timeout: 10_000 }).toEqual([{ reason: "its worker was stopped" }]);
    letGo();
    expect(await first.ended).toMatchObject({ code: 0, stderr: "" });
    const second = start();
    await expect.poll(() => second.of("terminated").at(-1), { timeout: 40_000 }).toBe("done");
    expect(world.count("pay", "terminated")).toBe(3);
  }, 120_000);
});
