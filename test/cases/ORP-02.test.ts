// The same under the LangGraph server: test/server/crashes.full.test.ts.
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode } from "../../src/index.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { sweep } from "../../src/worker/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const stateOf = async (threadId: string) =>
  (await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [threadId]))[0]?.state;

/** A process that is killed while its payment is under way. */
async function orphan(name: string) {
  const task = { url: db.url, worldUrl: world.url, thread: name, shape: "guarded" } as const;
  const dying = startWorker({ ...task, input: "new" });
  world.beforeAnswer = async ({ thread: paidBy }) => {
    if (paidBy !== name) return;
    dying.child.kill("SIGKILL");
    await dying.ended;
  };
  expect(await dying.ended).toMatchObject({ signal: "SIGKILL" });
  world.beforeAnswer = () => {};
  return task;
}

/** A run whose step lasts until it is stopped, or let go. */
function lasting(ledger = db.openLedger()) {
  let entered: () => void = () => {};
  let letGo: (value: string) => void = () => {};
  const reached = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const gate = new Promise<string>((resolve) => {
    letGo = resolve;
  });
  const builder = new StateGraph(State)
    .addNode(
      "wait",
      durableNode(State, async (_state, { step }) => {
        const wait = async () => {
          entered();
          return gate;
        };
        return { log: [await step.write("wait", {}, wait)] };
      }),
    )
    .addNode("after", async () => ({ log: ["after"] }))
    .addEdge(START, "wait")
    .addEdge("wait", "after");
  return { ledger, reached, letGo, graph: durableGraph(builder, { ledger }) };
}

describe("ORP-02: a run whose process is gone", () => {
  it("ORP-02: is shown as due, and lets a new run in at once, which finishes it with one effect", async () => {
    const task = await orphan("same-machine");
    await db.sql("update longhaul.threads set lease_until = now() + interval '1 hour' where thread_id = $1", [
      task.thread,
    ]);
    const next = await work(task);
    expect(next.log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
    expect([world.count("pay", task.thread), await stateOf(task.thread)]).toEqual([1, "done"]);
  });

  it("ORP-02: on another machine lets a new run in within one lease, with the reason in the step's history", async () => {
    const task = await orphan("elsewhere");
    await db.sql(
      `update longhaul.threads set holder = holder || '{"host":"elsewhere","bootId":"another"}' where thread_id = $1`,
      [task.thread],
    );
    expect(await work(task)).toMatchObject({ drain: { kind: "busy" } });
    await db.advance(15_001);
    const { lines } = await longhaul(db.url, "runs");
    expect(lines).toContainEqual(expect.objectContaining({ threadId: task.thread, state: "due" }));
    // The lease of its step is longer, and has begun with it.
    await db.advance(15_001);
    expect((await work(task)).log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
    const reasons = await db.sql<{ reason: string }>(
      "select reason from longhaul.step_events join longhaul.steps using (key) where thread_id = $1 and actor = 'takeover'",
      [task.thread],
    );
    expect(reasons).toEqual([{ reason: "the last holder is gone and left no receipt" }]);
    expect(world.count("pay", task.thread)).toBe(1);
  });
});

describe("ORP-02: a run that is cancelled", () => {
  it("ORP-02: comes to an end, gives its thread free at once, and keeps what its open call came to", async () => {
    const { graph, reached, letGo } = lasting();
    const controller = new AbortController();
    const running = graph.invoke({ log: [] }, { ...thread("cancelled"), signal: controller.signal });
    await reached;
    controller.abort(new Error("cancelled by ann"));
    letGo("waited");
    await expect(running).rejects.toThrow();
    await expect.poll(() => stateOf("cancelled")).toBe("failed");
    expect((await graph.invoke(null, thread("cancelled"))).log).toEqual(["waited", "after"]);
  });
});

describe("ORP-02: a thread that is deleted while it runs", () => {
  it("ORP-02: is cancelled first; its run stores nothing more and ends; that its write was made is kept", async () => {
    const { graph, ledger, reached, letGo } = lasting();
    const running = graph.invoke({ log: [] }, thread("deleted"));
    await reached;
    await expect(ledger[LEDGER_PARTS].saver.deleteThread("deleted")).rejects.toMatchObject({ code: "THREAD_BUSY" });
    letGo("waited");
    await expect(running).rejects.toThrow(/cancelled/);
    await expect.poll(async () => (await sweep(ledger))["deletions"]).toBe(1);
    expect(await db.sql("select 1 from longhaul.checkpoints where thread_id = 'deleted'")).toEqual([]);
    expect(await db.sql("select 1 from longhaul.steps where thread_id = 'deleted'")).toEqual([]);
    expect(await db.sql("select name, state from longhaul.deleted_effects where thread_id = 'deleted'")).toEqual([
      { name: "wait", state: "SUCCEEDED" },
    ]);
  });
});
