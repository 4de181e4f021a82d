// Forks: what ran before the point stays, what comes after is new, and nothing of the other branch is repeated or returned unasked.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  approvalsOf,
  decide,
  durable,
  durableGraph,
  fork,
  type Ledger,
  requestApproval,
  settle,
} from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({
  amount: Annotation<number>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const thread = (thread_id: string) => ({ configurable: { thread_id } });

interface World {
  reads: number;
  readonly bookings: string[];
  readonly paid: { amount: number; key: string }[];
  lost?: boolean;
}
const newWorld = (): World => ({ reads: 0, bookings: [], paid: [] });

/** Books a room, then looks up the rate, asks, and pays. */
function trip(world: World, onFork?: "ask" | "run") {
  const builder = new StateGraph(State)
    .addNode("book", async (_state, runtime) => {
      const room = await durable(runtime).step.write("book", { room: 7 }, async ({ idempotencyKey }) => {
        world.bookings.push(idempotencyKey);
        return "room 7";
      });
      return { log: [room] };
    })
    .addNode("rate", async (_state, runtime) => {
      const rate = await durable(runtime).step.read("rate", { of: "EUR" }, async () => `rate ${++world.reads}`);
      return { log: [rate] };
    })
    .addNode("pay", async ({ amount }, runtime) => {
      const { allowed } = await requestApproval(runtime, { action: "pay", args: { amount } });
      if (!allowed) return { log: ["not paid"] };
      const paid = await durable(runtime).step.write("pay", { amount }, async ({ idempotencyKey }) => {
        world.paid.push({ amount, key: idempotencyKey });
        if (world.lost) throw new Error("socket hang up");
        return `paid ${amount}`;
      });
      return { log: [paid] };
    })
    .addEdge(START, "book")
    .addEdge("book", "rate")
    .addEdge("rate", "pay")
    .addEdge("pay", END);
  return durableGraph(builder, { ledger, ...(onFork === undefined ? {} : { onFork }) });
}

type Trip = ReturnType<typeof trip>;

async function approve(threadId: string): Promise<number> {
  const pending = await approvalsOf(ledger, { threadId, status: "pending" });
  for (const { id } of pending) await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
  return pending.length;
}

async function take(graph: Trip, threadId: string) {
  await graph.invoke({ amount: 10, log: [] }, thread(threadId));
  await approve(threadId);
  return graph.invoke(null, thread(threadId));
}

async function pointBefore(graph: Trip, threadId: string, node: string): Promise<string> {
  for await (const state of graph.getStateHistory(thread(threadId)))
    if (state.next[0] === node && state.metadata?.source === "loop")
      return String(state.config.configurable?.["checkpoint_id"]);
  throw new Error(`Nothing stood before ${node}.`);
}

const questions = (state: unknown): unknown[] =>
  ((state as { __interrupt__?: { value: { kind?: string } }[] }).__interrupt__ ?? []).map(
    ({ value }) => value.kind ?? value,
  );

describe("a fork", () => {
  it("runs nothing again of what ran before it; after it asks anew, reads anew and pays under a new key", async () => {
    const world = newWorld();
    const graph = trip(world);
    expect((await take(graph, "new amount")).log).toEqual(["room 7", "rate 1", "paid 10"]);
    const checkpointId = await pointBefore(graph, "new amount", "rate");
    const made = await fork(ledger, graph, { threadId: "new amount", checkpointId, by: "ann" });
    expect(made).toEqual({ threadId: "new amount", checkpointId: expect.any(String), from: checkpointId });
    await graph.updateState(thread("new amount"), { amount: 1000 }, "book");
    const asked = await graph.invoke(null, thread("new amount"));
    expect([asked.log, world.reads, world.paid.length]).toEqual([["room 7", "rate 2"], 2, 1]);
    expect(await approve("new amount")).toBe(1);
    expect((await graph.invoke(null, thread("new amount"))).log).toEqual(["room 7", "rate 2", "paid 1000"]);
    expect(world.bookings.length).toBe(1);
    expect(world.paid.map(({ amount }) => amount)).toEqual([10, 1000]);
    expect(new Set(world.paid.map(({ key }) => key)).size).toBe(2);
    const shown = await longhaul(db.url, "show", "new amount", "--history");
    expect(shown.lines).toContainEqual(
      expect.objectContaining({ event: "forked", by: "ann", reason: expect.stringContaining(checkpointId) }),
    );
  });

  it("asks a person before it does a write with the same input again, and reuses the result on their word", async () => {
    const world = newWorld();
    const graph = trip(world);
    await take(graph, "same amount");
    await fork(ledger, graph, {
      threadId: "same amount",
      checkpointId: await pointBefore(graph, "same amount", "rate"),
      by: "ann",
    });
    await graph.invoke(null, thread("same amount"));
    await approve("same amount");
    const asked = await graph.invoke(null, thread("same amount"));
    expect(questions(asked)).toEqual(["SIBLING_EFFECT"]);
    expect(world.paid.length).toBe(1);
    const [step] = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = 'same amount' and state = 'WAITING_HUMAN'",
    );
    await settle(ledger, { idempotencyKey: step?.key ?? "", by: "ann", outcome: "reuse" });
    expect((await graph.invoke(null, thread("same amount"))).log).toEqual(["room 7", "rate 2", "paid 10"]);
    expect(world.paid.length).toBe(1);
  });

  it("does it again unasked with onFork: run, also from another process than the one that forked", async () => {
    const world = newWorld();
    await take(trip(world), "run");
    const checkpointId = await pointBefore(trip(world), "run", "rate");
    await fork(ledger, trip(world), { threadId: "run", checkpointId, by: "ann", onFork: "run" });
    const other = trip(world);
    await other.invoke(null, thread("run"));
    await approve("run");
    expect((await other.invoke(null, thread("run"))).log).toEqual(["room 7", "rate 2", "paid 10"]);
    expect(new Set(world.paid.map(({ key }) => key)).size).toBe(2);
  });

  it("can ask where the graph would not", async () => {
    const world = newWorld();
    const graph = trip(world, "run");
    await take(graph, "stricter");
    const checkpointId = await pointBefore(graph, "stricter", "rate");
    await fork(ledger, graph, { threadId: "stricter", checkpointId, by: "ann", onFork: "ask" });
    await graph.invoke(null, thread("stricter"));
    await approve("stricter");
    expect(questions(await graph.invoke(null, thread("stricter")))).toEqual(["SIBLING_EFFECT"]);
  });

  it("takes recorded reads with equal inputs where it is told to, and says so in their history", async () => {
    const world = newWorld();
    const graph = trip(world);
    await take(graph, "reuse");
    const checkpointId = await pointBefore(graph, "reuse", "rate");
    await fork(ledger, graph, { threadId: "reuse", checkpointId, by: "ann", reuse: "equal-input" });
    expect((await graph.invoke(null, thread("reuse"))).log).toEqual(["room 7", "rate 1"]);
    expect(world.reads).toBe(1);
    const told = await db.sql(
      "select actor, to_state from longhaul.step_events e join longhaul.steps s using (key) where s.thread_id = 'reuse' and actor = 'fork'",
    );
    expect(told).toEqual([{ actor: "fork", to_state: "SUCCEEDED" }]);
    // The thread's later turns are on the branch too.
    await approve("reuse");
    await graph.invoke(null, thread("reuse"));
    expect(world.reads).toBe(1);
  });

  it("is refused with the reason while a write is in doubt, and LangGraph's own ways back are too", async () => {
    const world: World = { ...newWorld(), lost: true };
    const graph = trip(world);
    await take(graph, "doubt");
    const checkpointId = await pointBefore(graph, "doubt", "rate");
    const refused = {
      code: "OUTCOME_UNKNOWN",
      status: 409,
      message: expect.stringMatching(/pay\/pay.*may have happened/),
    };
    await expect(fork(ledger, graph, { threadId: "doubt", checkpointId, by: "ann" })).rejects.toMatchObject(refused);
    const past = { configurable: { thread_id: "doubt", checkpoint_id: checkpointId } };
    await expect(graph.updateState(past, { amount: 1 })).rejects.toMatchObject(refused);
    await expect(graph.invoke(null, past)).rejects.toMatchObject(refused);
    expect(await db.sql("select 1 from longhaul.forks where thread_id = 'doubt'")).toEqual([]);
    // At the head the thread goes on, and asks.
    expect(questions(await graph.invoke(null, thread("doubt")))).toEqual(["NEEDS_RECONCILIATION"]);
  });

  it("leaves what waited on the other branch behind: its request is superseded", async () => {
    const graph = trip(newWorld());
    await graph.invoke({ amount: 10, log: [] }, thread("waits"));
    const checkpointId = await pointBefore(graph, "waits", "rate");
    await fork(ledger, graph, { threadId: "waits", checkpointId, by: "ann" });
    expect((await approvalsOf(ledger, { threadId: "waits" })).map(({ status }) => status)).toEqual(["superseded"]);
  });

  it("of a thread whose turns are alike asks nothing about the turns before it", async () => {
    const sent: string[] = [];
    const builder = new StateGraph(State)
      .addNode("turn", async ({ amount }, runtime) => {
        await durable(runtime).step.write("send", { letter: "the same" }, async ({ idempotencyKey }) => {
          sent.push(idempotencyKey);
          return "sent";
        });
        return { amount: amount + 1 };
      })
      .addEdge(START, "turn")
      .addConditionalEdges("turn", ({ amount }) => (amount < 3 ? "turn" : END));
    const graph = durableGraph(builder, { ledger });
    await graph.invoke({ amount: 0 }, thread("loop"));
    const head = String((await graph.getState(thread("loop"))).config.configurable?.["checkpoint_id"]);
    await fork(ledger, graph, { threadId: "loop", checkpointId: head, by: "ann" });
    await graph.updateState(thread("loop"), { amount: 1 }, "turn");
    expect((await graph.invoke(null, thread("loop"))).amount).toBe(3);
    expect(sent.length).toBe(5);
  });

  it("is refused for a checkpoint, a thread, a graph or an option that is none", async () => {
    const graph = trip(newWorld());
    const request = { threadId: "none", checkpointId: "1ef00000-0000-6000-8000-000000000000", by: "ann" };
    await expect(fork(ledger, graph, request)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(fork(ledger, {}, request)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    for (const bad of [{ by: "" }, { onFork: "maybe" }, { reuse: "all" }, { checkpointId: "" }, { more: 1 }])
      await expect(fork(ledger, graph, { ...request, ...bad } as never)).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
  });
});

describe("longhaul fork", () => {
  it("lists the points of a thread's past, the newest first", async () => {
    const graph = trip(newWorld());
    await take(graph, "listed");
    const { lines } = await longhaul(db.url, "fork", "listed");
    expect(lines[0]).toMatchObject({ isHead: true, source: "loop", step: 3 });
    expect(lines.map(({ checkpointId }) => checkpointId)).toContain(await pointBefore(graph, "listed", "rate"));
    expect(await longhaul(db.url, "fork", "nobody")).toMatchObject({ code: 1, lines: [{ error: "NOT_FOUND" }] });
    expect(await longhaul(db.url, "fork", "listed", String(lines[2]?.["checkpointId"]))).toMatchObject({ code: 2 });
  });
});
