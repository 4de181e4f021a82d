import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { work, workTogether } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

/** Checkpoints that have more than one successor. */
const forks = (thread: string) =>
  db.sql(
    `select parent_checkpoint_id from longhaul.checkpoints where thread_id = $1 and parent_checkpoint_id is not null
     group by checkpoint_ns, parent_checkpoint_id having count(*) > 1`,
    [thread],
  );

describe("DSE-03: five processes answer one question at one moment", () => {
  it("DSE-03: one continuation runs, and the others change nothing", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "approval", shape: "asking" } as const;
    expect(await work({ ...task, input: "new" })).toHaveProperty("__interrupt__");
    // The first continuation lasts until the others have come to an end: none of them can come after it.
    let others = 0;
    world.beforeAnswer = () => expect.poll(() => others, { timeout: 30_000 }).toBe(4);
    const workers = await workTogether(
      Array.from({ length: 5 }, (_, i) => ({ ...task, input: "resume", resume: `${i}` }) as const),
    );
    for (const { result } of workers) void result.then(() => others++);
    const results = await Promise.all(workers.map(({ result }) => result));
    world.beforeAnswer = () => {};
    const applied = results.filter(({ log }) => log !== undefined);
    expect(applied).toHaveLength(1);
    expect(results.filter(({ drain }) => drain?.kind === "busy")).toHaveLength(4);
    expect(applied[0]?.log).toEqual([expect.stringMatching(/^answer \d$/), "pay po_1", "after"]);
    expect(["pay", "node-after"].map((what) => world.count(what, "approval"))).toEqual([1, 1]);
    expect(await forks("approval")).toEqual([]);
    // A click that comes later finds the same decision, and nothing to do.
    const late = await work({ ...task, input: "resume", resume: "late" });
    expect(late.log).toEqual(applied[0]?.log);
    expect(["pay", "node-after"].map((what) => world.count(what, "approval"))).toEqual([1, 1]);
  });

  it("DSE-03: of five people who settle one unknown outcome at one moment, one is recorded, by name and once", async () => {
    world.beforeAnswer = () => {
      throw new Error("500");
    };
    const task = {
      url: db.url,
      worldUrl: world.url,
      thread: "settle",
      shape: "guarded",
      lookup: "cannot-tell",
    } as const;
    expect(await work({ ...task, input: "new" })).toHaveProperty("__interrupt__");
    world.beforeAnswer = () => {};
    const [step] = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = 'settle'",
    );
    const people = ["ann", "bob", "cid", "dee", "eve"];
    const answers = await Promise.all(
      people.map((by) =>
        longhaul(db.url, "reconcile", "settle", step?.key ?? "", "--happened", JSON.stringify({ id: by }), "--by", by),
      ),
    );
    const results = answers.map(({ lines }) => lines[0]?.["result"]);
    expect(results.filter((result) => result === "settled")).toHaveLength(1);
    expect(results.filter((result) => result === "already-settled")).toHaveLength(4);
    const winner = people[results.indexOf("settled")];
    const said = await db.sql(
      `select actor from longhaul.step_events join longhaul.steps using (key)
       where thread_id = 'settle' and to_state = 'SUCCEEDED'`,
    );
    expect(said).toEqual([{ actor: winner }]);
    expect((await work(task)).log).toEqual(["a", `pay ${winner}`, "z"]);
    expect(world.count("pay", "settle")).toBe(1);
  });
});
