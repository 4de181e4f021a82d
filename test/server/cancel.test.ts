// A run that the LangGraph dev server has is cancelled from outside it, and goes on there when that is lifted.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cancelRun, redrive } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { devProject } from "../support/devServer.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("CAN-01: a run of a LangGraph server", () => {
  it("CAN-01: is cancelled by the ledger, starts no node after it, and goes on there when the cancel is lifted", async () => {
    const ledger = db.openLedger();
    const project = await devProject(db.url, world.url);
    const server = await project.start();
    const { thread_id: threadId } = await server.client.threads.create();
    let asked: string | undefined;
    world.beforeAnswer = async () => {
      asked = (await cancelRun(ledger, { threadId, by: "ann" })).result;
    };
    await server.client.runs.wait(threadId, "guarded", { input: { log: [] }, raiseError: false });
    const stateOf = async () =>
      (await db.sql("select state from longhaul.threads where thread_id = $1", [threadId]))[0]?.["state"];
    expect(asked, server.log()).toBe("cancel requested");
    await expect.poll(stateOf, { timeout: 20_000 }).toBe("cancelled");
    const counts = () => ["pay", "node-z", "node-errorHandler", "node-undo"].map((what) => world.count(what, threadId));
    expect(counts()).toEqual([1, 0, 0, 0]);

    world.beforeAnswer = () => {};
    await redrive(ledger, { threadId, by: "ben" });
    const log = await server.client.runs.wait(threadId, "guarded", { input: null });
    expect(log, server.log()).toMatchObject({ log: ["a", "pay po_1", "z"] });
    expect(counts()).toEqual([1, 1, 0, 0]);
  }, 180_000);
});
