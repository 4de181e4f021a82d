// A process that is to stop lets its runs come to a step's end, and another worker goes on at once: a drain is no cancel.
import { Annotation, END, RunControl, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drain, drainReason, durableGraph, durableNode } from "../../src/index.js";
import { deferred, oneNode, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorker, work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const threadRow = async (threadId: string) =>
  (
    await db.sql(
      `select t.state, t.lease_until = '-infinity' as free, w.due_at <= longhaul.ledger_now() as due, w.reason
       from longhaul.threads t left join longhaul.wakes w using (thread_id) where thread_id = $1`,
      [threadId],
    )
  )[0];
const DUE = { state: "due", free: true, due: true, reason: "its process was stopping" };

describe("a drain", () => {
  it("on SIGTERM records the write under way, starts no other, and leaves the thread due for another worker", async () => {
    const task = { url: db.url, worldUrl: world.url, thread: "sigterm", shape: "two writes" } as const;
    const first = startWorker({ ...task, input: "new", drains: true });
    const gate = deferred();
    const sent = deferred();
    world.beforeAnswer = async () => {
      sent.resolve();
      await gate.promise;
    };
    await sent.promise;
    first.child.kill("SIGTERM");
    await expect.poll(() => world.count("draining", "sigterm"), { timeout: 20_000 }).toBe(1);
    world.beforeAnswer = () => {};
    gate.resolve();
    expect((await first.result).drain?.kind).toBe("shutdown");
    expect(await stepsOf(db, "sigterm")).toMatchObject([{ name: "pay", state: "SUCCEEDED" }]);
    expect(await threadRow("sigterm")).toEqual(DUE);
    expect((await work(task)).log).toHaveLength(2);
    expect(world.count("pay", "sigterm")).toBe(2);
    expect(await threadRow("sigterm")).toMatchObject({ state: "done" });
  });

  it("stops between two supersteps of plain nodes, and resolves when the threads are free", async () => {
    const ledger = db.openLedger();
    const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
    let drained: Promise<void> | undefined;
    const builder = new StateGraph(State)
      .addNode("a", async () => {
        drained ??= drain(ledger);
        return { log: ["a"] };
      })
      .addNode("b", async () => ({ log: ["b"] }))
      .addEdge(START, "a")
      .addEdge("a", "b")
      .addEdge("b", END);
    const error = await durableGraph(builder, { ledger })
      .invoke({ log: [] }, thread("plain"))
      .catch((caught: unknown) => caught);
    expect(drainReason(error)?.kind).toBe("shutdown");
    await drained;
    expect(await threadRow("plain")).toEqual(DUE);
    const other = durableGraph(builder, { ledger: db.openLedger() });
    expect((await other.invoke(null, thread("plain"))).log).toEqual(["a", "b"]);
  });

  it("that the caller asks for by a RunControl of its own leaves the thread due too", async () => {
    const control = new RunControl();
    const builder = new StateGraph(Annotation.Root({ n: Annotation<number> }))
      .addNode("a", async () => {
        control.requestDrain("mine");
        return { n: 1 };
      })
      .addNode("b", async () => ({ n: 2 }))
      .addEdge(START, "a")
      .addEdge("a", "b");
    const graph = durableGraph(builder, { ledger: db.openLedger() });
    await expect(graph.invoke({ n: 0 }, { ...thread("own"), control })).rejects.toThrow("mine");
    expect(await threadRow("own")).toMatchObject({ state: "due", free: true, due: null });
    expect(await graph.invoke(null, thread("own"))).toEqual({ n: 2 });
  });

  it("keeps the input of a run that is started after it, and runs none of it", async () => {
    const ledger = db.openLedger();
    await drain(ledger);
    let ran = 0;
    const run = async () => ran++;
    const error = await oneNode(ledger, run)
      .invoke({ log: [] }, thread("after"))
      .catch((caught: unknown) => caught);
    expect([drainReason(error)?.kind, ran]).toEqual(["shutdown", 0]);
    expect(await threadRow("after")).toEqual(DUE);
    await oneNode(db.openLedger(), run).invoke(null, thread("after"));
    expect(ran).toBe(1);
  });

  it("cuts a wait short that would be made in the process", async () => {
    const ledger = db.openLedger();
    let tries = 0;
    const failing = async () => {
      tries++;
      throw Object.assign(new Error("later"), { status: 503, headers: { "retry-after": "25" } });
    };
    const graph = oneNode(ledger, (step) => step.read("slow", 1, failing, { retry: { failures: 9 } }));
    const running = graph.invoke({ log: [] }, thread("waits")).catch((caught: unknown) => caught);
    await expect.poll(() => tries).toBe(1);
    const startedAt = performance.now();
    await drain(ledger);
    expect(drainReason(await running)?.kind).toBe("shutdown");
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await threadRow("waits")).toEqual(DUE);
  });

  it("leaves a graph that runs inside another to be gone on with by that one", async () => {
    const ledger = db.openLedger();
    const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
    const made: string[] = [];
    const graphOf = (on: typeof ledger, drains: boolean) => {
      const inner = oneNode(on, async (step) => {
        await step.write("first", 1, async () => made.push("first"));
        if (drains) void drain(on);
        await step.write("second", 1, async () => made.push("second"));
      });
      const outer = durableNode(State, async () => {
        await inner.invoke({ log: [] }, thread("inner"));
        return { log: ["outer"] };
      });
      return durableGraph(new StateGraph(State).addNode("outer", outer).addEdge(START, "outer"), { ledger: on });
    };
    const error = await graphOf(ledger, true)
      .invoke({ log: [] }, thread("outer"))
      .catch((caught: unknown) => caught);
    expect([drainReason(error)?.kind, made]).toEqual(["shutdown", ["first"]]);
    expect(await threadRow("outer")).toEqual(DUE);
    expect(await threadRow("inner")).toMatchObject({ state: "due", free: true, due: null });
  });
});
