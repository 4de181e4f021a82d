import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { devProject } from "../support/devServer.js";
import { work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("CLI-01: one graph under langgraphjs dev and in plain node", () => {
  it("CLI-01: keeps its own checkpointer in both, so that node goes on where the server stopped, with one effect", async () => {
    const project = await devProject(db.url, world.url);
    const server = await project.start();
    const { thread_id: thread } = await server.client.threads.create();
    const asked = await server.client.runs.wait(thread, "asking", { input: { log: [] } });
    expect(asked, server.log()).toHaveProperty("__interrupt__");
    // What the server's own saver knows dies with it.
    await server.kill();
    const task = { url: db.url, worldUrl: world.url, thread, shape: "asking" } as const;
    expect((await work({ ...task, input: "resume" })).log).toEqual(["answer yes", "pay po_1", "after"]);
    expect(world.count("pay", thread)).toBe(1);
    const steps = await db.sql("select name, state, attempt from longhaul.steps where thread_id = $1", [thread]);
    expect(steps).toEqual([{ name: "pay", state: "SUCCEEDED", attempt: 1 }]);
    const checkpoints = await db.sql("select 1 from longhaul.checkpoints where thread_id = $1", [thread]);
    expect(checkpoints.length).toBeGreaterThan(3);
  }, 180_000);
});
