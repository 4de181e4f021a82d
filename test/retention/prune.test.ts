// Pruning: what is left can be gone on from, replayed and forked as before; nothing open or in doubt goes (G24).
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  approvalsOf,
  decide,
  durable,
  durableGraph,
  type Ledger,
  prune,
  requestApproval,
  settle,
} from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { graph as stateful } from "./statefulGraph.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({
  n: Annotation<number>,
  until: Annotation<number>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const thread = (thread_id: string, more: object = {}) => ({ configurable: { thread_id, ...more } });
const DAY_MS = 24 * 3_600_000;

interface World {
  readonly sent: string[];
  fails?: boolean;
}

/** Reads, asks at every tenth turn, and sends the same letter every turn. */
function looping(world: World, options: { ask?: boolean; other?: Ledger } = {}) {
  const builder = new StateGraph(State)
    .addNode("turn", async ({ n }, runtime) => {
      const { step } = durable(runtime);
      const read = await step.read("clock", { n }, async () => `read ${n}`);
      if (options.ask && n % 10 === 9) await requestApproval(runtime, { action: "go on", args: { n } });
      const send = async ({ idempotencyKey }: { idempotencyKey: string }) => {
        world.sent.push(idempotencyKey);
        if (world.fails) throw new Error("socket hang up");
        return "sent";
      };
      await step.write("send", { letter: "the same" }, send);
      return { n: n + 1, log: [read] };
    })
    .addEdge(START, "turn")
    .addConditionalEdges("turn", ({ n, until }) => (n < until ? "turn" : END));
  return durableGraph(builder, { ledger: options.other ?? ledger });
}

async function historyOf(graph: { getStateHistory(config: object): AsyncIterable<unknown> }, threadId: string) {
  const all: unknown[] = [];
  for await (const state of graph.getStateHistory(thread(threadId))) all.push(JSON.parse(JSON.stringify(state)));
  return all as { config: { configurable: Record<string, string> }; next: string[]; values: Record<string, unknown> }[];
}

const count = async (what: string, threadId: string) =>
  Number(
    (await db.sql<{ n: string }>(`select count(*) as n from longhaul.${what} where thread_id = $1`, [threadId]))[0]?.n,
  );

describe("what a prune leaves of a thread", () => {
  it("is whole: the newest checkpoints with all they had, from which it goes on and is replayed", async () => {
    const world: World = { sent: [] };
    const graph = looping(world);
    await graph.invoke({ n: 0, until: 12 }, thread("whole"));
    const before = await historyOf(graph, "whole");
    expect(await prune(ledger, { threadId: "whole", keepLast: 4 })).toMatchObject({
      threads: 1,
      checkpoints: before.length - 4,
      skipped: [],
    });
    const after = await historyOf(graph, "whole");
    expect(after).toEqual(before.slice(0, 4));
    expect((await graph.invoke({ n: 0, until: 2 }, thread("whole")))["n"]).toBe(2);
    // A replay from the oldest that is left does what it would do had nothing been removed: it asks before it sends again.
    const twin = looping({ sent: [] });
    await twin.invoke({ n: 0, until: 12 }, thread("twin"));
    const old = (await historyOf(twin, "twin"))[3];
    await twin.invoke({ n: 0, until: 2 }, thread("twin"));
    const replayed = await graph.invoke(null, after[3]?.config as object);
    const unpruned = await twin.invoke(null, old?.config as object);
    expect([replayed, world.sent.length]).toEqual([{ ...unpruned, __interrupt__: expect.anything() }, 14]);
  });

  it("includes all of the subgraphs below, those with a history of their own too", async () => {
    const graph = stateful(ledger);
    for (let turn = 0; turn < 5; turn++) await graph.invoke({ items: [`t${turn}`] }, thread("nested"));
    await graph.invoke({ items: ["t5"] }, thread("twin"));
    const before = await historyOf(graph, "nested");
    await prune(ledger, { threadId: "nested", keepLast: 3 });
    await prune(ledger, { threadId: "nested", keepLast: 2 });
    expect(await historyOf(graph, "nested")).toEqual(before.slice(0, 2));
    const next = (await graph.invoke({ items: ["t5"] }, thread("nested")))["items"] as string[];
    // The subgraph remembers its five visits.
    expect(next.at(-2)).toBe("visit 6");
  });

  it("is waiting for the same person, whose word carries it on, with each letter sent once", async () => {
    const world: World = { sent: [] };
    const graph = looping(world, { ask: true });
    await graph.invoke({ n: 0, until: 15 }, thread("asks"));
    expect(world.sent.length).toBe(9);
    const report = await prune(ledger, { threadId: "asks", keepLast: 1 });
    expect(report.checkpoints).toBeGreaterThan(5);
    const [approval] = await approvalsOf(ledger, { threadId: "asks", status: "pending" });
    await decide(ledger, { approvalId: approval?.id ?? "", by: "ann", decision: { status: "approved" } });
    expect((await graph.invoke(null, thread("asks")))["n"]).toBe(15);
    expect([world.sent.length, new Set(world.sent).size]).toEqual([15, 15]);
  });

  it("has every write whose outcome is not known, and all that came after it", async () => {
    const world: World = { sent: [] };
    const graph = looping(world);
    await graph.invoke({ n: 0, until: 3 }, thread("doubt"));
    world.fails = true;
    await graph.invoke({ n: 0, until: 3 }, thread("doubt"));
    world.fails = false;
    await prune(ledger, { threadId: "doubt", keepLast: 1 });
    await db.advance(400 * DAY_MS);
    await prune(ledger, { threadId: "doubt", olderThanMs: DAY_MS });
    const [step] = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = 'doubt' and doubt_since is not null",
    );
    await settle(ledger, { idempotencyKey: step?.key ?? "", by: "ann", outcome: "happened", receipt: "sent" });
    expect((await graph.invoke(null, thread("doubt")))["n"]).toBe(3);
    expect(world.sent.length).toBe(6);
  });
});

describe("a step", () => {
  it("that read goes with its checkpoint; a write stays until its thread has ended and rested", async () => {
    const world: World = { sent: [] };
    const graph = looping(world);
    await graph.invoke({ n: 0, until: 6 }, thread("ends"));
    expect([await count("steps", "ends")]).toEqual([12]);
    // Three checkpoints are left: after the last turn, before it and before the one before.
    await prune(ledger, { threadId: "ends", keepLast: 3, olderThanMs: 0 });
    const left = await db.sql(
      "select effect, count(*)::int as n from longhaul.steps where thread_id = 'ends' group by 1 order by 1",
    );
    expect(left).toEqual([
      { effect: "read", n: 2 },
      { effect: "write", n: 2 },
    ]);
    const orphans = await db.sql(
      "select 1 from longhaul.step_changes c where not exists (select 1 from longhaul.steps s where s.key = c.key)",
    );
    expect(orphans).toEqual([]);
  });

  it("of a thread that has not rested so long stays when it wrote", async () => {
    const graph = looping({ sent: [] });
    await graph.invoke({ n: 0, until: 6 }, thread("rests"));
    await db.advance(2 * DAY_MS);
    await graph.invoke({ n: 0, until: 1 }, thread("rests"));
    await prune(ledger, { threadId: "rests", olderThanMs: DAY_MS });
    const left = await db.sql(
      "select effect, count(*)::int as n from longhaul.steps where thread_id = 'rests' group by 1 order by 1",
    );
    expect(left).toContainEqual({ effect: "write", n: 7 });
  });

  it("of a branch that was left is asked about on the other one, also when its checkpoints are gone", async () => {
    const world: World = { sent: [] };
    const graph = looping(world, { ask: true });
    await graph.invoke({ n: 7, until: 9 }, thread("forked"));
    expect(world.sent.length).toBe(2);
    const start = (await historyOf(graph, "forked")).find(({ values }) => values["n"] === 7);
    const fork = await graph.updateState(start?.config as object, { n: 7, log: ["forked"] });
    await prune(ledger, { threadId: "forked", keepLast: 1 });
    const state: Record<string, unknown> = await graph.invoke(null, fork);
    expect(state["__interrupt__"]).toMatchObject([{ value: { kind: "SIBLING_EFFECT" } }]);
    expect(world.sent.length).toBe(2);
  });
});

describe("a prune", () => {
  it("that is dry says what would go, and removes nothing", async () => {
    const graph = looping({ sent: [] });
    await graph.invoke({ n: 0, until: 6 }, thread("dry"));
    const before = await historyOf(graph, "dry");
    const dry = await longhaul(db.url, "prune", "--keep-last", "2", "--thread", "dry", "--dry-run");
    expect(await historyOf(graph, "dry")).toEqual(before);
    const real = await longhaul(db.url, "prune", "--keep-last", "2", "--thread", "dry");
    expect(dry.lines).toEqual([{ ...real.lines[0], dryRun: true }]);
    expect(real.lines).toEqual([
      expect.objectContaining({ checkpoints: before.length - 2, threads: 1, dryRun: false }),
    ]);
  });

  it("disturbs no run that goes on meanwhile", async () => {
    const world: World = { sent: [] };
    const graph = looping(world);
    let ended = false;
    const running = graph.invoke({ n: 0, until: 30 }, { ...thread("busy"), recursionLimit: 100 }).finally(() => {
      ended = true;
    });
    let removed = 0;
    while (!ended) removed += (await prune(ledger, { threadId: "busy", keepLast: 1 })).checkpoints;
    expect((await running)["n"]).toBe(30);
    expect([removed > 10, world.sent.length, new Set(world.sent).size]).toEqual([true, 30, 30]);
    const log = (await graph.getState(thread("busy"))).values["log"] as string[];
    expect(log).toEqual(Array.from({ length: 30 }, (_, n) => `read ${n}`));
  });

  it("leaves alone a thread whose run was sent to its past", async () => {
    let entered: () => void = () => {};
    const reached = new Promise<void>((resolve) => {
      entered = resolve;
    });
    let letGo: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let waits = false;
    const builder = new StateGraph(State)
      .addNode("turn", async ({ n }) => {
        if (waits) {
          entered();
          await gate;
        }
        return { n: n + 1 };
      })
      .addEdge(START, "turn")
      .addConditionalEdges("turn", ({ n, until }) => (n < until ? "turn" : END));
    const graph = durableGraph(builder, { ledger });
    await graph.invoke({ n: 0, until: 5 }, thread("past"));
    const old = (await historyOf(graph, "past")).find(({ values }) => values["n"] === 1);
    waits = true;
    const running = graph.invoke(new Command({ update: { log: ["again"] } }), old?.config as object);
    await reached;
    expect(await prune(ledger, { threadId: "past", keepLast: 1 })).toMatchObject({ checkpoints: 0, skipped: ["past"] });
    letGo();
    expect((await running)["n"]).toBe(5);
  });

  it("goes through all threads, and is refused without a limit or with one that is none", async () => {
    const report = await prune(ledger, { keepLast: 1 });
    expect(report.threads).toBeGreaterThan(2);
    expect(await prune(ledger, { keepLast: 1 })).toMatchObject({ checkpoints: 0 });
    for (const bad of [
      {},
      { keepLast: 0 },
      { keepLast: 1.5 },
      { olderThanMs: -1 },
      { olderThanMs: Number.NaN },
      { keep: 1 },
    ])
      await expect(prune(ledger, bad as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(await longhaul(db.url, "prune", "--older-than", "soon")).toMatchObject({ code: 2 });
  });
});
