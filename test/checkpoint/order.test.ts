// Order: of checkpoints by the database and not by workers' clocks, of pending writes as the superstep applied them.

import type { RunnableConfig } from "@langchain/core/runnables";
import { BaseCheckpointSaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { fanIn, linear, nested } from "./graphs.js";
import { createWorld, lend, startRun, thread, toArray, type World } from "./harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());
afterEach(() => vi.restoreAllMocks());

/** This process becomes a worker whose clock is wrong: checkpoint ids carry it. */
function shiftClock(ms: number): void {
  const real = Date.now.bind(Date);
  vi.spyOn(Date, "now").mockImplementation(() => real() + ms);
}

async function release(threadId: string): Promise<void> {
  const { pool, schema } = world.database;
  await pool.query({
    text: `update ${schema}.threads set lease_until = '-infinity' where thread_id = $1`,
    values: [threadId],
  });
}

const LOOP = { source: "loop", step: 1, parents: {} } as const;

describe("Two workers whose clocks are 5 s apart", () => {
  it("carry a thread to its end: what the slow one appended is the newest (G13)", async () => {
    const threadId = "clocks";
    const ran: string[] = [];
    const dies = (node: string) => {
      ran.push(node);
      if (node === "b" && ran.length === 2) throw new Error("dies in b");
    };
    const work = async (input: { items: string[] } | null) => {
      const saver = world.saver.forRun(await startRun(world, threadId));
      return linear(saver, dies)
        .invoke(input, lend(saver, thread(threadId)))
        .finally(() => release(threadId));
    };
    await expect(work({ items: ["i"] })).rejects.toThrow("dies in b");
    shiftClock(-5_000);
    expect((await work(null)).items).toEqual(["i", "a", "b", "c"]);
    vi.restoreAllMocks();
    expect((await work(null)).items).toEqual(["i", "a", "b", "c"]);
    expect(ran).toEqual(["a", "b", "b", "c"]);
    const history = await toArray(linear(world.saver).getStateHistory(thread(threadId)));
    expect(history.map((state) => state.metadata?.step)).toEqual([3, 2, 1, 0, -1]);
    // By the ids, the last two would have been the oldest.
    const ids = history.map((state) => String(state.config.configurable?.["checkpoint_id"]));
    expect([...ids].sort().reverse()).not.toEqual(ids);
  });

  it("list before a checkpoint what was stored before it", async () => {
    const config = thread("before");
    const early = await world.saver.put(config, { ...emptyCheckpoint(), id: uuid6(0) }, LOOP, {});
    shiftClock(-5_000);
    const late = await world.saver.put(early, { ...emptyCheckpoint(), id: uuid6(1) }, LOOP, {});
    const ids = async (before: typeof late) =>
      (await toArray(world.saver.list(config, { before }))).map(
        (tuple) => tuple.config.configurable?.["checkpoint_id"],
      );
    expect(await ids(late)).toEqual([early.configurable?.["checkpoint_id"]]);
    expect(await ids(early)).toEqual([]);
  });
});

it("the last put is the head, also when it is an older checkpoint that is stored again", async () => {
  const [first, second] = [uuid6(0), uuid6(1)];
  for (const id of [first, second, first])
    await world.saver.put(thread("put-again"), { ...emptyCheckpoint(), id }, LOOP, {});
  expect((await world.saver.getTuple(thread("put-again")))?.checkpoint.id).toBe(first);
});

it("a subgraph's checkpoint is as old as the one it ran on, though its put overtook its parent's", async () => {
  const at = (ns: string, parent?: string) =>
    thread("overtaken", { checkpoint_ns: ns, ...(parent ? { checkpoint_id: parent } : {}) });
  const put = (ns: string, id: string, root: string | undefined, parent?: string) =>
    world.saver.put(
      at(ns, parent),
      { ...emptyCheckpoint(), id },
      { source: "loop", step: 1, parents: root === undefined ? {} : { "": root } },
      {},
    );
  const [r1, s1, r2, s2] = [uuid6(0), uuid6(1), uuid6(2), uuid6(3)];
  await put("", r1, undefined);
  await put("s", s1, r1);
  await put("s", s2, r2, s1); // The put of r2, on which s2 ran, is still on its way.
  await put("", r2, undefined, r1);
  const before = { configurable: { checkpoint_id: r2 } };
  const found = await toArray(world.saver.list(at("s"), { before, limit: 1 }));
  expect(found.map((tuple) => tuple.checkpoint.id)).toEqual([s1]);
});

it("a replay shows a subgraph with its own history as it was then", async () => {
  const graph = nested(world.saver, true);
  await graph.invoke({ items: ["i"] }, thread("history"));
  await graph.invoke({ items: ["j"] }, thread("history"));
  await graph.invoke({ items: ["k"] }, thread("history"));
  const points = (await toArray(graph.getStateHistory(thread("history")))).filter((state) => state.next[0] === "s");
  const second = await graph.invoke(null, points[1]?.config ?? {});
  expect(second.items.filter((item) => item === "k")).toEqual([]);
  expect(second.items.filter((item) => item === "j").length).toBeGreaterThan(0);
});

describe("A fan-in", () => {
  it("reads back in the order that the live run applied, 8 times of 8", async () => {
    for (let i = 0; i < 8; i++) {
      const live = await fanIn(world.saver).invoke({ log: [] }, thread(`fan-in-${i}`));
      expect(live.log).toEqual(["w5", "w1", "w3", "w2", "w4"]);
      expect((await fanIn(world.saver).getState(thread(`fan-in-${i}`))).values.log).toEqual(live.log);
    }
  });

  it("is rebuilt from its writes in one round trip, however long its history", async () => {
    const config = thread("one-trip");
    for (let turn = 0; turn < 6; turn++) await fanIn(world.saver).invoke({ log: [`turn ${turn}`] }, config);
    const sent = world.sent.length;
    const history = await world.saver.getDeltaChannelHistory({ config, channels: ["log"] });
    expect(world.sent.slice(sent)).toEqual(["lh_load_delta_history"]);
    expect(history["log"]?.writes.length).toBe(36);
  });

  it("has the history that LangGraph's own walk finds, at every checkpoint and on every branch", async () => {
    const config = thread("walks");
    const graph = fanIn(world.saver);
    for (const turn of ["one", "two"]) await graph.invoke({ log: [turn] }, config);
    const [, , middle] = await toArray(graph.getStateHistory(config));
    await graph.updateState(middle?.config ?? {}, { log: ["edited"] }, "w");
    await graph.invoke({ log: ["a long text that is stored once a thread ".repeat(40)] }, config);
    const channels = ["log", "none", "__pregel_tasks"];
    const walk = (at: RunnableConfig) =>
      BaseCheckpointSaver.prototype.getDeltaChannelHistory.call(world.saver, { config: at, channels });
    const points = (await toArray(graph.getStateHistory(config))).map((state) => state.config);
    expect(points.length).toBeGreaterThan(12);
    for (const at of [config, thread("nowhere"), ...points])
      expect(await world.saver.getDeltaChannelHistory({ config: at, channels })).toEqual(await walk(at));
  });

  it("lists pending writes by task path, then task id by code point, then index", async () => {
    const base = await world.saver.put(thread("paths"), { ...emptyCheckpoint(), id: uuid6(0) }, LOOP, {});
    await world.saver.putWrites(
      base,
      [
        ["x", "third"],
        ["x", "fourth"],
      ],
      "task-a",
      "~__pregel_pull, 0000000002",
    );
    await world.saver.putWrites(base, [["x", "second"]], "task-z", "~__pregel_pull, 0000000001");
    await world.saver.putWrites(base, [["x", "input b"]], "b");
    await world.saver.putWrites(base, [["x", "input B"]], "B");
    const expected = ["input B", "input b", "second", "third", "fourth"];
    expect((await world.saver.getTuple(base))?.pendingWrites?.map((write) => write[2])).toEqual(expected);
    const [listed] = await toArray(world.saver.list(thread("paths")));
    expect(listed?.pendingWrites?.map((write) => write[2])).toEqual(expected);
  });

  it("keeps the first of a task's ordinary writes and the last of its special ones", async () => {
    const base = await world.saver.put(thread("twice"), { ...emptyCheckpoint(), id: uuid6(0) }, LOOP, {});
    await world.saver.putWrites(base, [["x", 1]], "task");
    await world.saver.putWrites(
      base,
      [
        ["x", 2],
        ["y", 2],
      ],
      "task",
    );
    await world.saver.putWrites(base, [["__error__", "first"]], "task");
    await world.saver.putWrites(
      base,
      [
        ["__error__", "second"],
        ["__error__", "third"],
      ],
      "task",
    );
    expect((await world.saver.getTuple(base))?.pendingWrites).toEqual([
      ["task", "__error__", "third"],
      ["task", "x", 1],
      ["task", "y", 2],
    ]);
  });

  it("stores names with backslashes, which LangGraph's saver cannot read back", async () => {
    const values = { "back\\slash": "é\\x41" };
    const versions = { "back\\slash": 1 };
    const next = await world.saver.put(
      thread("names"),
      { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions },
      LOOP,
      versions,
    );
    await world.saver.putWrites(next, [["back\\slash", 1]], "task\\1");
    const tuple = await world.saver.getTuple(next);
    expect([tuple?.checkpoint.channel_values, tuple?.pendingWrites]).toEqual([values, [["task\\1", "back\\slash", 1]]]);
  });
});
