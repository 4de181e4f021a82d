// Graphs through `langgraphjs dev` that is killed, reloaded, and asked twice. Effects are counted in the world outside.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevProject, type DevServer, devProject } from "../support/devServer.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
let project: DevProject;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
  project = await devProject(db.url, world.url);
});
beforeEach(() => {
  world.beforeAnswer = () => {};
});
afterAll(() => world.close());

interface Log {
  readonly log: readonly string[];
}

/** A payment that the test has in its hands: it happened, and its answer is not sent yet. */
function heldPayment() {
  let arrived: () => void = () => {};
  let letGo: () => void = () => {};
  const happened = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  world.beforeAnswer = () => {
    arrived();
    return gate;
  };
  return { happened, letGo };
}

const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const counts = (thread: string) => ["pay", "node-z", "node-errorHandler"].map((what) => world.count(what, thread));

/** As the waker does for a thread that the server has forgotten. */
async function recreate({ client }: DevServer, threadId: string, graphId: string): Promise<void> {
  await client.threads.create({ threadId, ifExists: "do_nothing", graphId });
}

/** A run whose process is gone stays "running" for the server, and keeps every later run of its thread waiting. */
async function clearStaleRuns({ client }: DevServer, thread: string): Promise<void> {
  const runs = await client.runs.list(thread);
  expect(runs.map(({ status }) => status)).toEqual(["running"]);
  for (const { run_id } of runs) await client.runs.delete(thread, run_id);
}

describe("a dev server that is killed with SIGKILL", () => {
  it("in the middle of a run: the next server goes on with null, and pays nothing twice", async () => {
    const first = await project.start();
    const { thread_id: thread } = await first.client.threads.create();
    const { happened } = heldPayment();
    const dying = first.client.runs.wait(thread, "guarded", { input: { log: [] } }).catch(() => undefined);
    await happened;
    await first.kill();
    await dying;

    const second = await project.start();
    await recreate(second, thread, "guarded");
    const result = (await second.client.runs.wait(thread, "guarded", { input: null })) as unknown as Log;
    expect(result.log, second.log()).toEqual(["a", "pay po_1", "z"]);
    expect(counts(thread)).toEqual([1, 1, 0]);
    expect((await second.client.threads.getState<Log>(thread)).values.log).toEqual(result.log);
    await second.kill();
  }, 120_000);

  it("half a second after a pause: the next server still has the question, and its answer is worth one effect", async () => {
    const first = await project.start();
    const { thread_id: thread } = await first.client.threads.create();
    const asked = await first.client.runs.wait(thread, "asking", { input: { log: [] } });
    expect(asked).toHaveProperty("__interrupt__");
    await later(500);
    await first.kill();

    const second = await project.start();
    await recreate(second, thread, "asking");
    const state = await second.client.threads.getState(thread);
    expect(state.tasks.flatMap((task) => task.interrupts.map(({ value }) => value))).toEqual(["pay?"]);
    const result = (await second.client.runs.wait(thread, "asking", { command: { resume: "yes" } })) as unknown as Log;
    expect(result.log, second.log()).toEqual(["answer yes", expect.stringMatching(/^pay po_/), "after"]);
    expect(world.count("pay", thread)).toBe(1);
    await second.kill();
  }, 120_000);
});

describe("a dev server that reloads in the middle of a run", () => {
  it("ORP-02: lets a new run in once the old one is cleared, which goes on, and pays nothing twice", async () => {
    const server = await project.start();
    const { thread_id: thread } = await server.client.threads.create();
    const { happened, letGo } = heldPayment();
    const cut = server.client.runs.wait(thread, "guarded", { input: { log: [] } }).catch(() => undefined);
    await happened;
    await project.touch();
    await cut;
    letGo();
    await expect.poll(() => server.log().split("Server running at").length, { timeout: 60_000 }).toBe(3);
    await clearStaleRuns(server, thread);
    const result = (await server.client.runs.wait(thread, "guarded", { input: null })) as unknown as Log;
    expect(result.log, server.log()).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
    expect(counts(thread)).toEqual([1, 1, 0]);
    await server.kill();
  }, 120_000);
});

describe("one question that is answered twice", () => {
  let server: DevServer;
  beforeAll(async () => {
    server = await project.start();
  }, 120_000);
  afterAll(() => server.kill());

  it.each(["reject", "enqueue", "interrupt", "rollback"] as const)(
    "with the strategy %s, while the first answer's payment is under way: one payment",
    async (multitaskStrategy) => {
      const { client } = server;
      const { thread_id: thread } = await client.threads.create();
      expect(await client.runs.wait(thread, "asking", { input: { log: [] } })).toHaveProperty("__interrupt__");
      const { happened, letGo } = heldPayment();
      const answer = (resume: string) =>
        client.runs
          .wait(thread, "asking", { command: { resume }, multitaskStrategy })
          .catch((error: unknown) => String(error));
      const first = answer("first");
      await happened;
      const second = answer("second");
      // An answer that is queued waits for the first; the others have had their say by the time the payment answers.
      await Promise.race([second, later(2000)]);
      letGo();
      const results = await Promise.all([first, second]);
      const end = async () => {
        const log = (await client.threads.getState<Log>(thread)).values.log;
        if (!log.includes("after")) await client.runs.wait(thread, "asking", { input: null }).catch(() => undefined);
        return log;
      };
      await expect
        .poll(end, { timeout: 60_000, interval: 500, message: JSON.stringify(results) })
        .toEqual(["answer first", expect.stringMatching(/^pay po_/), "after"]);
      expect([world.count("pay", thread), world.paymentsOf(thread).length]).toEqual([1, 1]);
    },
    120_000,
  );
});
