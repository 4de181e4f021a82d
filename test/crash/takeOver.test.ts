// What a takeover does with the leases of a process that is gone, and with those of one that may be alive.
import { afterAll, beforeAll, expect, it } from "vitest";
import { drainReason } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { runScript } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import type { ChildTask } from "./child.js";
import { stepsOf } from "./matrix.js";
import { paymentGraph } from "./paymentGraph.js";

let db: TestDatabase;
let world: World;

beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const config = (thread_id: string) => ({ configurable: { thread_id } });

/** A process that is killed between the intent of its payment and the payment. */
async function dieInDoubt(thread: string): Promise<void> {
  const kill = { statement: "lh_begin_write", nth: 1, at: "after" } as const;
  const task: ChildTask = { url: db.url, worldUrl: world.url, threads: [{ thread, declaration: "lookup" }], kill };
  expect(await runScript("test/crash/child.ts", [JSON.stringify(task)])).toMatchObject({
    signal: "SIGKILL",
    stderr: "",
  });
}

it("ends a dead process's step lease also when the lease of its run is over by time already", async () => {
  await dieInDoubt("late");
  await db.sql("update longhaul.threads set lease_until = now() - interval '1 second' where thread_id = 'late'");
  await db.sql(
    "update longhaul.steps set lease_until = now() + interval '1 hour' where thread_id = 'late' and state = 'RUNNING'",
  );
  const graph = paymentGraph(db.openLedger(), world.url, "lookup");
  const result = await graph.invoke(null, config("late")).catch((error: unknown) => drainReason(error));
  expect(result).toMatchObject({ log: ["page 1", "model 1", "po_1", "after"] });
});

it("respects the leases of a process on another machine, and goes on when they are over", async () => {
  await dieInDoubt("elsewhere");
  await db.sql(
    `update longhaul.threads set holder = holder || '{"host":"elsewhere","bootId":"another"}' where thread_id = 'elsewhere'`,
  );
  const before = world.paymentsOf("elsewhere").length;
  const graph = paymentGraph(db.openLedger(), world.url, "lookup");
  const busy = await graph.invoke(null, config("elsewhere")).catch((error: unknown) => error);
  expect(drainReason(busy)).toMatchObject({ kind: "busy", message: expect.stringContaining("on elsewhere") });
  expect(await stepsOf(db, "elsewhere")).toMatchObject([{}, {}, { name: "pay", state: "RUNNING", attempt: 1 }]);
  expect(world.paymentsOf("elsewhere")).toHaveLength(before);
  await db.advance(31_000);
  expect(await graph.invoke(null, config("elsewhere"))).toMatchObject({ log: expect.arrayContaining(["after"]) });
  expect(world.paymentsOf("elsewhere")).toHaveLength(1);
});
