// kill -9 around a read and a model call: what was recorded is never asked for again, what was not is asked once more.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import type { KillPoint } from "../support/pools.js";
import { inParallel, runScript } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import type { ChildTask } from "./child.js";
import { lengthenLeases, type Resumed, resume, stepsOf } from "./matrix.js";

interface Case {
  readonly name: string;
  readonly kill: KillPoint;
  /** Requests for the page and to the model, before and after the crash together. */
  readonly pages: number;
  readonly models: number;
  readonly stored?: false;
}

const CASES: readonly Case[] = [
  { name: "before-the-first-checkpoint", kill: at("lh_run_put", "before"), pages: 1, models: 1, stored: false },
  { name: "before-the-record-of-a-read", kill: at("lh_record_read", "before"), pages: 2, models: 1 },
  { name: "after-the-record-of-a-read", kill: at("lh_record_read", "after"), pages: 1, models: 1 },
  { name: "after-the-intent-of-a-model-call", kill: at("lh_begin_read", "after"), pages: 1, models: 1 },
  { name: "before-the-receipt-of-a-model-call", kill: at("lh_succeed", "before"), pages: 1, models: 2 },
  { name: "after-the-receipt-of-a-model-call", kill: at("lh_succeed", "after"), pages: 1, models: 1 },
];

function at(statement: string, when: "before" | "after"): KillPoint {
  return { statement, nth: 1, at: when };
}

describe("kill -9 around reads and model calls", () => {
  let db: TestDatabase;
  let world: World;
  let resumed: Map<string, Resumed | undefined>;

  beforeAll(async () => {
    db = await testDatabase();
    world = await startWorld();
    await inParallel(CASES, 3, async ({ name, kill }) => {
      const task: ChildTask = {
        url: db.url,
        worldUrl: world.url,
        threads: [{ thread: name, declaration: "lookup" }],
        kill,
      };
      expect(await runScript("test/crash/child.ts", [JSON.stringify(task)])).toMatchObject({
        signal: "SIGKILL",
        stderr: "",
      });
    });
    await lengthenLeases(db);
    const results = await resume(
      db.url,
      world,
      "lookup",
      CASES.map(({ name }) => name),
    );
    resumed = new Map(CASES.map(({ name }, i) => [name, results[i]]));
  }, 180_000);
  afterAll(() => world.close());

  it.each(CASES)("$name: $pages requests for the page, $models to the model, one payment", async (crash) => {
    const { name, pages, models, stored = true } = crash;
    expect({ pages: world.count("page", name), models: world.count("model", name) }).toEqual({ pages, models });
    expect(world.paymentsOf(name)).toHaveLength(1);
    const log = [`page ${pages}`, `model ${models}`, world.paymentsOf(name)[0]?.id, "after"];
    expect(resumed.get(name)).toMatchObject({ stored, log });
    expect(await stepsOf(db, name)).toMatchObject(
      ["page", "model", "pay"].map((step) => ({ name: step, state: "SUCCEEDED" })),
    );
  });
});
