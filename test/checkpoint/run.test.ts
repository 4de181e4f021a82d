// Whole graphs through the view of one run, lent as durableGraph lends it: every loop of the run, subgraphs included,
// writes through it.
import { Annotation, Command, END, interrupt, isGraphDrained, Send, START, StateGraph } from "@langchain/langgraph";
import { type BaseCheckpointSaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import { PooledDatabase, type PoolLike } from "../../src/postgres/pool.js";
import { asking, Items, inner, nested } from "./graphs.js";
import { createWorld, deferred, endLease, lend, startRun, thread, toArray, type World } from "./harness.js";
import { SCHEMA } from "./openDatabase.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const State = Annotation.Root({
  items: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
  turns: Annotation<number>({ reducer: (_, right) => right, default: () => 0 }),
});

/** A loop of three turns; in each, four Sends to a subgraph. */
function research(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(State)
    .addNode("plan", ({ turns }) => ({ items: [`plan${turns}`], turns: turns + 1 }))
    .addNode("topic", inner())
    .addNode("join", () => ({ items: ["join"] }))
    .addEdge(START, "plan")
    .addConditionalEdges(
      "plan",
      ({ turns }) => [1, 2, 3, 4].map((i) => new Send("topic", { items: [`${turns}.${i}`] })),
      ["topic"],
    )
    .addEdge("topic", "join")
    .addConditionalEdges("join", ({ turns }) => (turns < 3 ? "plan" : END), ["plan", END])
    .compile({ checkpointer });
}

function topics(turn: number): string[] {
  return [1, 2, 3, 4].flatMap((i) => [`${turn}.${i}`, "i1", "i2"]);
}
const WHOLE = [0, 1, 2].flatMap((turn) => [`plan${turn}`, ...topics(turn + 1), "join"]);

describe("A run", () => {
  for (const durability of ["sync", "async", "exit"] as const) {
    it(`of loops, parallel Sends and subgraphs ends as in memory (${durability})`, async () => {
      const threadId = `research-${durability}`;
      const run = await startRun(world, threadId);
      const saver = world.saver.forRun(run);
      const result = await research(saver).invoke({}, { ...lend(saver, thread(threadId)), durability });
      expect(result.items).toEqual(WHOLE);
      expect(run.losses).toBe(0);
      expect((await research(world.saver).getState(thread(threadId))).values.items).toEqual(WHOLE);
      const heads = await world.database.pool.query({
        text: `select h.checkpoint_id = (select c.checkpoint_id from ${world.database.schema}.checkpoints c where c.thread_id = h.thread_id
          and c.checkpoint_ns = h.checkpoint_ns order by longhaul_seq desc limit 1) as newest from ${world.database.schema}.heads h where h.thread_id = $1`,
        values: [threadId],
      });
      expect(heads.rows.every((row) => row.newest)).toBe(true);
      // The root and, unless all is left to the exit, a namespace for each of the twelve subgraph calls.
      expect(heads.rows).toHaveLength(durability === "exit" ? 1 : 13);
    });
  }

  it("that died in a subgraph is gone on with by the next one, which repeats only what had not finished", async () => {
    const ran: string[] = [];
    let dies = true;
    const graph = (checkpointer: BaseCheckpointSaver) => {
      const sub = new StateGraph(Items)
        .addNode("i1", () => {
          ran.push("i1");
          return { items: ["i1"] };
        })
        .addNode("i2", () => {
          ran.push("i2");
          if (dies) throw new Error("dies in i2");
          return { items: ["i2"] };
        })
        .addEdge(START, "i1")
        .addEdge("i1", "i2")
        .addEdge("i2", END)
        .compile();
      return new StateGraph(Items).addNode("s", sub).addEdge(START, "s").addEdge("s", END).compile({ checkpointer });
    };
    const first = world.saver.forRun(await startRun(world, "died"));
    await expect(graph(first).invoke({ items: ["i"] }, lend(first, thread("died")))).rejects.toThrow("dies in i2");
    await endLease(world, "died");
    dies = false;
    const second = world.saver.forRun(await startRun(world, "died"));
    const result = await graph(second).invoke(null, lend(second, thread("died")));
    expect(result.items).toEqual(["i", "i", "i1", "i2"]);
    expect(ran).toEqual(["i1", "i2", "i2"]);
  });

  for (const durability of ["sync", "async"] as const) {
    it(`may enter a subgraph again under its old namespace, as a retried durable node does (${durability})`, async () => {
      let failures = 2;
      const sub = new StateGraph(Items)
        .addNode("i1", () => ({ items: ["i1"] }))
        .addNode("i2", () => {
          if (failures-- > 0) throw new Error("not yet");
          return { items: ["i2"] };
        })
        .addEdge(START, "i1")
        .addEdge("i1", "i2")
        .addEdge("i2", END)
        .compile();
      const run = await startRun(world, `again-${durability}`);
      const saver = world.saver.forRun(run);
      const graph = new StateGraph(Items)
        .addNode(
          "w",
          async (_, config) => {
            Object.assign(config.configurable?.["__pregel_scratchpad"] ?? {}, { subgraphCounter: 0 });
            return { items: (await sub.invoke({ items: ["w"] })).items.slice(-1) };
          },
          { retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false } },
        )
        .addEdge(START, "w")
        .addEdge("w", END)
        .compile({ checkpointer: saver });
      const result = await graph.invoke({ items: [] }, { ...lend(saver, thread(`again-${durability}`)), durability });
      expect([result.items, run.lost]).toEqual([["i2"], undefined]);
      const heads = await world.database.pool.query({
        text: `select checkpoint_ns from ${world.database.schema}.heads where thread_id = $1`,
        values: [`again-${durability}`],
      });
      expect(heads.rows).toHaveLength(2);
    });
  }

  it("reads what it put, also while the put is still on its way", async () => {
    const { pool } = world.database;
    const held = deferred();
    const holding: PoolLike = {
      query: async (query, values) => {
        if (typeof query === "object" && query.name === "lh_run_put") await held.promise;
        return pool.query(query, values);
      },
      connect: () => pool.connect(),
      end: () => pool.end(),
    };
    const database = new PooledDatabase(holding, SCHEMA);
    const saver = new LedgerSaver(async () => database, SCHEMA).forRun(await startRun(world, "reads"));
    const config = thread("reads", { checkpoint_ns: "" });
    await saver.getTuple(config);
    const next = { ...emptyCheckpoint(), id: uuid6(0) };
    const put = saver.put(config, next, { source: "input", step: -1, parents: {} }, {});
    const reads = [saver.getTuple(config), toArray(saver.list(config)).then(([first]) => first)];
    // A read that did not wait would have been answered by the time that another is.
    await world.saver.getTuple(config);
    held.resolve();
    await put;
    expect((await Promise.all(reads)).map((tuple) => tuple?.checkpoint.id)).toEqual([next.id, next.id]);
  });

  it("whose lease ended during a subgraph's node stores nothing of it, and leaves as drained", async () => {
    const run = await startRun(world, "late");
    const saver = world.saver.forRun(run);
    const reached = deferred();
    const goOn = deferred();
    let bases: [string, string][] = [];
    const sub = new StateGraph(Items)
      .addNode("i1", async (_, config) => {
        bases = Object.entries(config.configurable?.["checkpoint_map"] ?? {});
        reached.resolve();
        await goOn.promise;
        return { items: ["i1"] };
      })
      .addEdge(START, "i1")
      .addEdge("i1", END)
      .compile();
    const graph = new StateGraph(Items)
      .addNode("s", sub)
      .addEdge(START, "s")
      .addEdge("s", END)
      .compile({ checkpointer: saver });
    const running = graph.invoke({ items: ["i"] }, { ...lend(saver, thread("late")), durability: "sync" });
    await reached.promise;
    // Even with sync durability the first checkpoints of a graph are still on their way when its first node runs.
    await saver.awaitStored("late", bases, 30_000);
    expect(bases).toHaveLength(2);
    await endLease(world, "late");
    const count = async () =>
      (await toArray(world.saver.list(thread("late")))).map((tuple) => tuple.pendingWrites?.length);
    const before = await count();
    goOn.resolve();
    await expect(running).rejects.toSatisfy(isGraphDrained);
    expect(await count()).toEqual(before);
    expect(run.losses).toBe(1);
  });
});

describe("A view knows whether its run ended with a question", () => {
  it("at the root, and no more once it is answered", async () => {
    const first = world.saver.forRun(await startRun(world, "asks"));
    await asking(first).invoke({ items: ["i"] }, lend(first, thread("asks")));
    expect(first.interrupted).toBe(true);
    await endLease(world, "asks");
    const second = world.saver.forRun(await startRun(world, "asks"));
    await asking(second).invoke(new Command({ resume: 1 }), lend(second, thread("asks")));
    expect(second.interrupted).toBe(false);
  });

  it("in a subgraph", async () => {
    const sub = new StateGraph(Items)
      .addNode("ask", () => ({ items: [String(interrupt("?"))] }))
      .addEdge(START, "ask")
      .addEdge("ask", END)
      .compile();
    const saver = world.saver.forRun(await startRun(world, "asks-below"));
    const graph = new StateGraph(Items)
      .addNode("s", sub)
      .addEdge(START, "s")
      .addEdge("s", END)
      .compile({ checkpointer: saver });
    await graph.invoke({ items: ["i"] }, lend(saver, thread("asks-below")));
    expect(saver.interrupted).toBe(true);
  });

  it("not when nobody asked", async () => {
    const saver = world.saver.forRun(await startRun(world, "silent"));
    await nested(saver).invoke({ items: ["i"] }, lend(saver, thread("silent")));
    expect([saver.interrupted, world.saver.interrupted]).toEqual([false, false]);
  });
});
