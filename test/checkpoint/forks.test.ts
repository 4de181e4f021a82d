// Forks, time travel and edits: LangGraph's legitimate ways to write a checkpoint that does not follow the newest one.
import type { RunnableConfig } from "@langchain/core/runnables";
import { Annotation, Command, END, isGraphDrained, Send, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StaleWriterError } from "../../src/core/errors.js";
import { asking, Items, inner, linear, nested } from "./graphs.js";
import { createWorld, lend, startRun, type TestRun, thread, toArray, type World } from "./harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const Count = Annotation.Root({ n: Annotation<number> });
function counting(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(Count)
    .addNode("a", ({ n }) => ({ n: n + 1 }))
    .addNode("b", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", END)
    .compile({ checkpointer });
}

async function editTheSecondToLast(checkpointer: BaseCheckpointSaver, threadId: string) {
  const graph = counting(checkpointer);
  await graph.invoke({ n: 0 }, thread(threadId));
  const history = await toArray(graph.getStateHistory(thread(threadId)));
  const beforeB = history.find((state) => state.next[0] === "b");
  const forked = await graph.updateState(beforeB?.config ?? {}, { n: 777 });
  return { graph, forked, state: await graph.getState(thread(threadId)) };
}

describe("A fork", () => {
  it("loses the edit on LangGraph's own saver (the fault that is mended here)", async () => {
    const { state } = await editTheSecondToLast(world.stock, "stock-fork");
    expect([state.values.n, state.next]).not.toEqual([777, ["b"]]);
  });

  it("reads back what was edited, and goes on from there", async () => {
    const { graph, forked, state } = await editTheSecondToLast(world.saver, "our-fork");
    expect([state.values.n, state.next]).toEqual([777, ["b"]]);
    expect(await graph.invoke(null, forked)).toEqual({ n: 778 });
    const ns = (await toArray(graph.getStateHistory(thread("our-fork")))).map((each) => each.values.n);
    expect(ns).toEqual([778, 777, 2, 1, 0, undefined]);
  });

  it("works in a thread that holds whole numbers as versions already", async () => {
    await counting(world.stock).invoke({ n: 0 }, thread("mixed-fork"));
    const { state } = await editTheSecondToLast(world.saver, "mixed-fork");
    expect([state.values.n, state.next]).toEqual([777, ["b"]]);
  });
});

it("versions rise, are never given twice, and follow whole numbers", () => {
  const versions = Array.from({ length: 1000 }, () => world.saver.getNextVersion(7));
  expect(new Set(versions).size).toBeGreaterThan(990);
  expect(versions.every((version) => version > 8 && version < 9)).toBe(true);
  expect(world.saver.getNextVersion(undefined)).toBeGreaterThan(1);
  expect(world.saver.getNextVersion(8.7)).toBeGreaterThan(9);
});

interface Scene {
  readonly run: TestRun;
  /** Runs a graph as one run of the thread: lease taken, saver lent, lease given back. */
  as<T>(
    work: (saver: BaseCheckpointSaver, config: ReturnType<typeof thread>) => Promise<T>,
    more?: Record<string, unknown>,
  ): Promise<T>;
}

let scenes = 0;
async function inScene(play: (as: Scene["as"]) => Promise<void>): Promise<TestRun[]> {
  const threadId = `scene-${++scenes}`;
  const runs: TestRun[] = [];
  await play(async (work, more = {}) => {
    const run = await startRun(world, threadId);
    runs.push(run);
    const saver = world.saver.forRun(run);
    try {
      return await work(saver, lend(saver, thread(threadId, more)));
    } finally {
      await world.database.pool.query(`update ${world.database.schema}.threads set lease_until = '-infinity'`);
    }
  });
  return runs;
}

interface WithHistory {
  getStateHistory(config: RunnableConfig): AsyncIterable<{ readonly next: string[]; readonly config: RunnableConfig }>;
}

/** The configurable of a point in the thread's past. */
async function pointBefore(
  node: string,
  which: "newest" | "oldest" = "newest",
  graph: WithHistory = linear(world.saver),
) {
  const states = (await toArray(graph.getStateHistory(thread(`scene-${scenes}`)))).filter(
    (state) => state.next[0] === node,
  );
  const state = which === "newest" ? states[0] : states.at(-1);
  return state?.config.configurable ?? {};
}

describe("A run of its own may", () => {
  const legitimate: Record<string, (as: Scene["as"]) => Promise<void>> = {
    "go on with a second input": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const second = await as((saver, config) => linear(saver).invoke({ items: ["j"] }, config));
      expect(second.items).toEqual(["i", "a", "b", "c", "j", "a", "b", "c"]);
    },
    "replay from an old checkpoint": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("b");
      expect((await as((saver, config) => linear(saver).invoke(null, config), old)).items).toEqual([
        "i",
        "a",
        "b",
        "c",
      ]);
    },
    "give new input to an old checkpoint": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("b");
      const again = await as((saver, config) => linear(saver).invoke({ items: ["again"] }, config), old);
      expect(again.items).toEqual(["i", "a", "again", "a", "b", "c"]);
    },
    "send a Command with update and goto to an old checkpoint": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("b");
      const command = new Command({ update: { items: ["u"] }, goto: "b" });
      expect((await as((saver, config) => linear(saver).invoke(command, config), old)).items).toContain("u");
    },
    "edit an old checkpoint and go on from the edit": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("b");
      const edit = await as((saver, config) => linear(saver).updateState(config, { items: ["u"] }), old);
      const after = await as((saver, config) => linear(saver).invoke(null, config), edit.configurable);
      expect(after.items).toEqual(["i", "a", "u", "b", "c"]);
    },
    "answer an interrupt, also after an edit at the head": async (as) => {
      await as((saver, config) => asking(saver).invoke({ items: ["i"] }, config));
      await as((saver, config) => asking(saver).updateState(config, { items: ["edit"] }, "a"));
      const after = await as((saver, config) => asking(saver).invoke(null, config));
      expect(after.items).toEqual(["i", "a", "edit"]);
      const end = await as((saver, config) => asking(saver).invoke(new Command({ resume: 1 }), config));
      expect(end.items).toEqual(["i", "a", "edit", "b1", "c"]);
    },
    "replay a subgraph": async (as) => {
      await as((saver, config) => nested(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("s", "newest", nested(world.saver));
      const replay = await as((saver, config) => nested(saver).invoke(null, config), old);
      expect(replay.items).toEqual(["i", "a", "i", "a", "i1", "i2", "z"]);
    },
    "replay a subgraph that keeps its own history": async (as) => {
      await as((saver, config) => nested(saver, true).invoke({ items: ["i"] }, config));
      await as((saver, config) => nested(saver, true).invoke({ items: ["j"] }, config));
      const old = await pointBefore("s", "oldest", nested(world.saver, true));
      const replay = await as((saver, config) => nested(saver, true).invoke(null, config), old);
      // Before the first visit of s there was no history of it, so nothing of the later ones shows.
      expect(replay.items).toEqual(["i", "a", "i", "a", "i1", "i2", "z"]);
    },
    "call one subgraph three times at once in a node": async (as) => {
      const sub = inner();
      const graph = (checkpointer: BaseCheckpointSaver) =>
        new StateGraph(Items)
          .addNode("w", async () => {
            const results = await Promise.all(["1", "2", "3"].map((item) => sub.invoke({ items: [item] })));
            return { items: results.flatMap((result) => result.items) };
          })
          .addEdge(START, "w")
          .addEdge("w", END)
          .compile({ checkpointer });
      const result = await as((saver, config) => graph(saver).invoke({ items: [] }, config));
      expect(result.items).toEqual(["1", "i1", "i2", "2", "i1", "i2", "3", "i1", "i2"]);
    },
    "store at its exit only": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, { ...config, durability: "exit" }));
      await as((saver, config) => linear(saver).invoke({ items: ["j"] }, { ...config, durability: "exit" }));
      expect((await linear(world.saver).getState(thread(`scene-${scenes}`))).values.items).toHaveLength(8);
    },
    "update several supersteps at once": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      await as((saver, config) =>
        linear(saver).bulkUpdateState(config, [
          { updates: [{ values: { items: ["q"] }, asNode: "a" }] },
          { updates: [{ values: { items: ["r"] }, asNode: "b" }] },
        ]),
      );
      expect((await linear(world.saver).getState(thread(`scene-${scenes}`))).next).toEqual(["c"]);
    },
    "copy an old checkpoint": async (as) => {
      await as((saver, config) => linear(saver).invoke({ items: ["i"] }, config));
      const old = await pointBefore("b");
      await as((saver, config) => linear(saver).updateState(config, null, "__copy__"), old);
      expect((await linear(world.saver).getState(thread(`scene-${scenes}`))).next).toEqual(["b"]);
    },
  };
  for (const [what, play] of Object.entries(legitimate)) {
    it(what, async () => {
      const runs = await inScene(play);
      expect(runs.map((run) => run.lost)).toEqual(runs.map(() => undefined));
    });
  }
});

describe("A run of its own may not", () => {
  it("answer an interrupt at a checkpoint that the thread has moved past", async () => {
    const runs = await inScene(async (as) => {
      await as((saver, config) => asking(saver).invoke({ items: ["i"] }, config));
      const old = (await asking(world.saver).getState(thread(`scene-${scenes}`))).config.configurable ?? {};
      await as((saver, config) => asking(saver).invoke(new Command({ resume: 1 }), config));
      const late = as((saver, config) => asking(saver).invoke(new Command({ resume: 2 }), config), old);
      await expect(late).rejects.toSatisfy(isGraphDrained);
      const state = await asking(world.saver).getState(thread(`scene-${scenes}`));
      expect(state.values.items).toEqual(["i", "a", "b1", "c"]);
    });
    expect(runs.at(-1)?.lost).toBeInstanceOf(StaleWriterError);
    expect(runs.at(-1)?.lost?.message).toMatch(/moved past/);
  });

  it("call a subgraph that keeps its own history twice in parallel", async () => {
    const sub = inner(true);
    let calls = 0;
    let bothCame: () => void = () => {};
    const both = new Promise<void>((resolve) => {
      bothCame = resolve;
    });
    const graph = (checkpointer: BaseCheckpointSaver) =>
      new StateGraph(Items)
        .addNode("a", () => ({ items: ["a"] }))
        .addNode("w", async () => {
          // At once means at once, also on a busy machine.
          if (++calls === 2) bothCame();
          await both;
          await sub.invoke({ items: ["w"] });
          return { items: ["w"] };
        })
        .addEdge(START, "a")
        .addConditionalEdges("a", () => [new Send("w", {}), new Send("w", {})])
        .addEdge("w", END)
        .compile({ checkpointer });
    const runs = await inScene(async (as) => {
      await expect(as((saver, config) => graph(saver).invoke({ items: ["i"] }, config))).rejects.toSatisfy(
        isGraphDrained,
      );
    });
    expect(runs[0]?.lost?.message).toMatch(/`checkpointer: true` keeps one history/);
  });
});
