// One writer at a time: the thread's lease in every statement, the heads row as the second lock, and a loser that
// changes nothing and is no failure to anybody.
import { Annotation, Command, END, isGraphDrained, START, StateGraph } from "@langchain/langgraph";
import { type BaseCheckpointSaver, type Checkpoint, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CancelledError, LeaseLostError, StaleWriterError, ThreadBusyError } from "../../src/core/errors.js";
import { linear } from "./graphs.js";
import { createWorld, deferred, endLease, lend, startRun, TestRun, thread, toArray, type World } from "./harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const LOOP = { source: "loop", step: 1, parents: {} } as const;

function checkpoint(values: Record<string, unknown> = {}): Checkpoint {
  const channel_versions = Object.fromEntries(
    Object.keys(values).map((channel) => [channel, world.saver.getNextVersion(1)]),
  );
  return { ...emptyCheckpoint(), id: uuid6(1), channel_values: values, channel_versions };
}

/** Everything that is stored of a thread's checkpoints, to show that nothing changed. */
async function everythingOf(threadId: string): Promise<string> {
  const tables = ["checkpoints", "checkpoint_blobs", "checkpoint_writes", "heads"];
  const rows = await Promise.all(
    tables.map(async (table) => {
      const text = `select to_jsonb(t) as row from ${world.database.schema}.${table} t where thread_id = $1 order by 1`;
      return (await world.database.pool.query({ text, values: [threadId] })).rows;
    }),
  );
  return JSON.stringify(rows);
}

/** A thread with one checkpoint, and two runs that both loaded it; the second took the thread over. */
async function twoRuns(threadId: string) {
  const base = await world.saver.put(thread(threadId), checkpoint({ x: 0 }), { ...LOOP, step: 0 }, {});
  const first = await startRun(world, threadId);
  const a = world.saver.forRun(first);
  await a.getTuple(thread(threadId));
  await endLease(world, threadId);
  const second = await startRun(world, threadId);
  const b = world.saver.forRun(second);
  await b.getTuple(thread(threadId));
  return { base, first, a, second, b };
}

describe("Of two runs that loaded the same checkpoint", () => {
  it("the one that lost the thread cannot put, and is told so without an Error that a graph would handle", async () => {
    const { base, first, a, b, second } = await twoRuns("taken");
    await expect(a.put(base, checkpoint({ x: 1 }), LOOP, {})).rejects.toSatisfy(isGraphDrained);
    expect(first.lost).toBeInstanceOf(LeaseLostError);
    await b.put(base, checkpoint({ x: 2 }), LOOP, {});
    expect(second.lost).toBeUndefined();
  });

  it("the loser's later puts, writes and errors change nothing and throw nothing", async () => {
    const { base, first, a, b } = await twoRuns("sticky");
    const next = await b.put(base, checkpoint({ x: 2 }), LOOP, {});
    await expect(a.putWrites(base, [["x", 1]], "task-1")).rejects.toSatisfy(isGraphDrained);
    const before = await everythingOf("sticky");
    await a.putWrites(next, [["__error__", { message: "late" }]], "task-1");
    await a.putWrites(next, [["x", 5]], "task-2");
    await a.put(next, checkpoint({ x: 3 }), LOOP, {});
    expect(await everythingOf("sticky")).toBe(before);
    expect(first.losses).toBe(1);
  });

  it("their pending writes never mix (first wins, whoever comes later is fenced)", async () => {
    const { base, a, b } = await twoRuns("mixture");
    await b.putWrites(
      base,
      [
        ["items", ["winner"]],
        ["branch:to:next", 1],
      ],
      "task-1",
    );
    await expect(a.putWrites(base, [["items", ["zombie"]]], "task-1")).rejects.toSatisfy(isGraphDrained);
    await expect((async () => (await b.getTuple(base))?.pendingWrites)()).resolves.toEqual([
      ["task-1", "items", ["winner"]],
      ["task-1", "branch:to:next", 1],
    ]);
  });

  for (const old of [true, false]) {
    it(`exactly one wins when both hold the epoch and only the head can tell (${old ? "old" : "new"} thread, 20 times)`, async () => {
      for (let i = 0; i < 20; i++) {
        const threadId = `head-${old}-${i}`;
        const first = { ...LOOP, step: 0 };
        const base = old ? await world.saver.put(thread(threadId), checkpoint({ x: 0 }), first, {}) : thread(threadId);
        const { ticket } = await startRun(world, threadId);
        const runs = [new TestRun(ticket), new TestRun(ticket)];
        const savers = runs.map((run) => world.saver.forRun(run));
        for (const saver of savers) await saver.getTuple(thread(threadId));
        const ends = await Promise.allSettled(savers.map((saver, x) => saver.put(base, checkpoint({ x }), LOOP, {})));
        expect(ends.map((end) => end.status).sort()).toEqual(["fulfilled", "rejected"]);
        expect(runs.filter((run) => run.lost instanceof StaleWriterError)).toHaveLength(1);
        expect(await toArray(world.saver.list(thread(threadId)))).toHaveLength(old ? 2 : 1);
      }
    });
  }

  it("a run whose lease ran out by the ledger's clock is refused though nobody took over", async () => {
    const base = await world.saver.put(thread("expired"), checkpoint(), { ...LOOP, step: 0 }, {});
    const run = await startRun(world, "expired");
    const saver = world.saver.forRun(run);
    await saver.getTuple(thread("expired"));
    await endLease(world, "expired");
    await expect(saver.put(base, checkpoint(), LOOP, {})).rejects.toSatisfy(isGraphDrained);
    expect(run.lost).toBeInstanceOf(LeaseLostError);
  });
});

describe("A put", () => {
  it("that was stored with its answer lost is a success when it is sent again, also after the lease is over", async () => {
    const { base, second, b } = await twoRuns("again");
    const next = checkpoint({ x: 1 });
    await b.put(base, next, LOOP, {});
    const stored = await everythingOf("again");
    await b.put(base, next, LOOP, {});
    await endLease(world, "again");
    await b.put(base, next, LOOP, {});
    expect(second.lost).toBeUndefined();
    expect((await everythingOf("again")).replaceAll(/"longhaul_seq":\d+/g, "")).toBe(
      stored.replaceAll(/"longhaul_seq":\d+/g, ""),
    );
  });

  it("does not bring a deleted thread back", async () => {
    const { base, second, b } = await twoRuns("deleted");
    await expect(world.saver.deleteThread("deleted")).rejects.toThrow(/a run still has it/);
    await expect(b.put(base, checkpoint({ x: 1 }), LOOP, {})).rejects.toSatisfy(isGraphDrained);
    expect(second.lost).toBeInstanceOf(CancelledError);
    await endLease(world, "deleted");
    await world.saver.deleteThread("deleted");
    await expect(b.put(base, checkpoint({ x: 2 }), LOOP, {})).resolves.toBeDefined();
    const third = new TestRun(second.ticket);
    const anew = checkpoint({ x: 3 });
    await expect(world.saver.forRun(third).put(thread("deleted"), anew, LOOP, {})).rejects.toSatisfy(isGraphDrained);
    expect(third.lost).toBeInstanceOf(LeaseLostError);
    expect(await everythingOf("deleted")).toBe("[[],[],[],[]]");
  });

  it("and putWrites are one statement each", async () => {
    const { base, b } = await twoRuns("round-trips");
    world.sent.length = 0;
    const next = await b.put(base, checkpoint({ x: 1, y: [1, 2], z: "z" }), LOOP, { x: 2, y: 2, z: 2 });
    await b.putWrites(
      next,
      [
        ["x", 1],
        ["y", 2],
        ["z", 3],
      ],
      "task-1",
      "path",
    );
    await world.saver.put(thread("round-trips-open"), checkpoint({ x: 1, y: 2 }), LOOP, { x: 2, y: 2 });
    expect(world.sent).toEqual(["lh_run_put", "lh_run_writes", "lh_open_put"]);
  });

  it("of another thread, from a graph that a node calls, is judged by that thread's own lease", async () => {
    const run = await startRun(world, "outer");
    const saver = world.saver.forRun(run);
    await saver.put(thread("other"), checkpoint(), LOOP, {});
    await startRun(world, "other-held");
    await expect(saver.put(thread("other-held"), checkpoint(), LOOP, {})).rejects.toThrow(ThreadBusyError);
    expect(run.lost).toBeUndefined();
  });
});

describe("A saver that belongs to no run", () => {
  it("is refused while a run has the thread, and stores again when the run has ended", async () => {
    const base = await world.saver.put(thread("admin"), checkpoint({ x: 0 }), LOOP, {});
    await startRun(world, "admin");
    const before = await everythingOf("admin");
    await expect(world.saver.put(base, checkpoint({ x: 1 }), LOOP, {})).rejects.toThrow(ThreadBusyError);
    await expect(world.saver.putWrites(base, [["x", 1]], "task-1")).rejects.toThrow(ThreadBusyError);
    expect(await everythingOf("admin")).toBe(before);
    await endLease(world, "admin");
    await world.saver.put(base, checkpoint({ x: 1 }), LOOP, {});
    expect((await world.saver.getTuple(thread("admin")))?.parentConfig).toEqual(base);
  });

  it("reads while a run has the thread", async () => {
    await linear(world.saver).invoke({ items: ["i"] }, thread("read"));
    await startRun(world, "read");
    expect((await linear(world.saver).getState(thread("read"))).values.items).toEqual(["i", "a", "b", "c"]);
  });
});

const Pay = Annotation.Root({
  items: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

/** a, pay with an error handler that undoes, z. `during` runs inside pay. */
function paying(checkpointer: BaseCheckpointSaver, effects: string[], during: (checkpointId: string) => Promise<void>) {
  return new StateGraph(Pay)
    .addNode("a", () => ({ items: ["a"] }))
    .addNode(
      "pay",
      async (_, config) => {
        await during(config.executionInfo?.checkpointId ?? "");
        effects.push("pay");
        return { items: ["pay"] };
      },
      {
        ends: ["undo", "z"],
        retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false },
        errorHandler: () => {
          effects.push("handler");
          return new Command({ goto: "undo" });
        },
      },
    )
    .addNode("undo", () => {
      effects.push("undo");
      return { items: ["undo"] };
    })
    .addNode("z", () => ({ items: ["z"] }))
    .addEdge(START, "a")
    .addEdge("a", "pay")
    .addEdge("pay", "z")
    .addEdge("z", END)
    .addEdge("undo", END)
    .compile({ checkpointer });
}

describe("A graph whose run is overtaken while a node works", () => {
  for (const durability of ["sync", "async"] as const) {
    it(`ends as drained, without error handler, retry or trace of its own (${durability})`, async () => {
      const threadId = `overtaken-${durability}`;
      const first = await startRun(world, threadId);
      const effects: string[] = [];
      const reached = deferred();
      let base = "";
      const goOn = deferred();
      const saver = world.saver.forRun(first);
      const late = paying(saver, effects, async (checkpointId) => {
        base = checkpointId;
        reached.resolve();
        await goOn.promise;
      }).invoke({ items: ["i"] }, { ...lend(saver, thread(threadId)), durability });
      await reached.promise;
      // With async durability the node may be ahead of the checkpoint it stands on.
      await saver.awaitStored(threadId, [["", base]], 30_000);
      await endLease(world, threadId);
      const other = world.saver.forRun(await startRun(world, threadId));
      await paying(other, [], async () => {}).invoke(null, lend(other, thread(threadId)));
      await endLease(world, threadId);
      const before = await everythingOf(threadId);
      goOn.resolve();
      await expect(late).rejects.toSatisfy(isGraphDrained);
      expect(await everythingOf(threadId)).toBe(before);
      expect(effects).toEqual(["pay"]);
      const state = await paying(world.saver, [], async () => {}).getState(thread(threadId));
      expect([state.values.items, state.next]).toEqual([["i", "a", "pay", "z"], []]);
    });
  }
});
