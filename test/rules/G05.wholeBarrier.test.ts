// G5: a write starts only when the base of every namespace above it is stored. Here the root's checkpoints are slow, the
// subgraph's are not, and the process is killed the moment its write arrives.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";
import { stepsOf } from "./harness.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("G5: the barrier holds for every namespace", () => {
  it.each(["async", "sync"] as const)(
    "a write in a subgraph waits for the root's base, and keeps its key after a kill (%s)",
    async (durability) => {
      const task = { url: db.url, worldUrl: world.url, thread: durability, shape: "nested" } as const;
      const slow = startWorker({ ...task, input: "new", durability, slowRootPutMs: 400 });
      world.beforeAnswer = async ({ thread }) => {
        if (thread !== durability) return;
        slow.child.kill("SIGKILL");
        await slow.ended;
      };
      expect(await slow.ended).toMatchObject({ signal: "SIGKILL", stderr: "" });
      world.beforeAnswer = () => {};
      const [row] = await db.sql<{ steps: number[] }>(
        `select array_agg((metadata->>'step')::int order by longhaul_seq) as steps from longhaul.checkpoints
         where thread_id = $1 and checkpoint_ns = ''`,
        [durability],
      );
      // Input, the step after it, and the base of the node that is the subgraph.
      expect(row?.steps).toEqual([-1, 0, 1]);
      expect((await work(task)).log).toContain(`pay ${world.paymentsOf(durability)[0]?.id}`);
      expect(world.count("pay", durability)).toBe(1);
      expect(await stepsOf(db, durability)).toMatchObject([{ state: "SUCCEEDED", attempt: 1 }]);
    },
  );
});
