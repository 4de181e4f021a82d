// `longhaul worker --waker langgraph-server` beside `langgraphjs dev`, as processes that are killed. Effects are counted in
// the world outside.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevProject, devProject } from "../support/devServer.js";
import { startWorld, type World } from "../support/world.js";
import { cliWorkers, holdPayment, stateOf } from "./processes.js";

let db: TestDatabase;
let world: World;
let project: DevProject;
let workers: ReturnType<typeof cliWorkers>;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
  project = await devProject(db.url, world.url);
  workers = cliWorkers(db, world);
});
afterEach(() => workers.killAll());
afterAll(() => world.close());

const start = (url: string) => workers.start("--waker", "langgraph-server", "--server", url);

describe("longhaul worker --waker langgraph-server", () => {
  it("has a thread run on whose server was killed with SIGKILL, and nothing is paid twice", async () => {
    const first = await project.start();
    const { thread_id: thread } = await first.client.threads.create();
    const happened = holdPayment(world, thread, 1);
    const dying = first.client.runs.wait(thread, "guarded", { input: { log: [] } }).catch(() => undefined);
    await happened;
    const graphs = await db.sql("select graph from longhaul.threads where thread_id = $1", [thread]);
    expect(graphs).toEqual([{ graph: "guarded" }]);
    await first.kill();
    await dying;

    const second = await project.start();
    const killed = start(second.url);
    await expect.poll(() => killed.of(thread), { timeout: 30_000 }).toContain("woke");
    // The worker that found the thread due dies as well.
    killed.child.kill("SIGKILL");
    const worker = start(second.url);
    await expect.poll(() => stateOf(db, thread), { timeout: 60_000 }).toBe("done");
    expect(worker.events.filter(({ event }) => event === "failed")).toEqual([]);
    expect([
      world.count("pay", thread),
      world.count("node-z", thread),
      world.count("node-errorHandler", thread),
    ]).toEqual([1, 1, 0]);
    // The server knows the thread again, and its state.
    const state = await second.client.threads.getState<{ log: string[] }>(thread);
    expect(state.values.log).toEqual(["a", "pay po_1", "z"]);
    const runs = async () => (await second.client.runs.list(thread)).map(({ status }) => status);
    await expect.poll(runs, { timeout: 20_000 }).not.toContain("running");
    await second.kill();
  }, 240_000);

  it("orders no run for a thread that has one, runs it again after that, and answers no question", async () => {
    const server = await project.start();
    const worker = start(server.url);
    const { thread_id: thread } = await server.client.threads.create();
    const asked = await server.client.runs.wait(thread, "asking", { input: { log: [] } });
    expect(asked).toHaveProperty("__interrupt__");
    const runs = async () => (await server.client.runs.list(thread)).map(({ status }) => status);
    const wake = () =>
      db.sql("insert into longhaul.wakes (thread_id, due_at, reason) values ($1, longhaul.ledger_now(), 'test')", [
        thread,
      ]);
    await wake();
    await expect.poll(runs, { timeout: 30_000 }).toEqual(["success", "success"]);
    expect(await stateOf(db, thread)).toBe("waiting");

    let letGo: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      world.beforeAnswer = () => {
        resolve();
        return new Promise((answer) => {
          letGo = answer;
        });
      };
    });
    const paying = server.client.runs.wait(thread, "asking", { command: { resume: "yes" } });
    await held;
    await wake();
    await expect.poll(() => worker.of(thread).at(-1), { timeout: 30_000 }).toBe("woke");
    expect(await runs()).toHaveLength(3);
    letGo();
    expect((await paying) as unknown).toMatchObject({
      log: ["answer yes", expect.stringMatching(/^pay po_/), "after"],
    });
    await expect.poll(async () => (await runs()).length, { timeout: 30_000 }).toBe(4);
    await expect.poll(() => stateOf(db, thread), { timeout: 30_000 }).toBe("done");
    expect(await db.sql("select 1 from longhaul.wakes where thread_id = $1", [thread])).toEqual([]);
    expect(world.count("pay", thread)).toBe(1);
    await server.kill();
  }, 240_000);
});
