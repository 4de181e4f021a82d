// Ordering runs: durable before it is acknowledged, once for an event, and the stored input is taken once.
import { HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph-checkpoint";
import { beforeAll, describe, expect, it } from "vitest";
import { cancelRun, durableGraph, type Ledger, startRun } from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: OpenedLedger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({
  order: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
function orders(on: Ledger, name?: string, ran: string[] = []) {
  const builder = new StateGraph(State)
    .addNode("work", async ({ order }) => {
      ran.push(order);
      return { log: [order] };
    })
    .addEdge(START, "work")
    .addEdge("work", END);
  return durableGraph(builder.compile(name === undefined ? {} : { name }), { ledger: on });
}
const trigger = (eventId: string) => ({ source: "shop", eventId });

describe("startRun", () => {
  it("orders one run for an event that is delivered five times at once", async () => {
    const graph = orders(ledger);
    const again = () => startRun(ledger, graph, { input: { order: "o1" }, trigger: trigger("e1") });
    const answers = await Promise.all([again(), again(), again(), again(), again()]);
    expect(answers.filter(({ started }) => started)).toHaveLength(1);
    expect(new Set(answers.map(({ threadId }) => threadId)).size).toBe(1);
    const threadId = answers[0]?.threadId ?? "";
    const [row] = await db.sql(
      "select t.state, w.reason from longhaul.threads t join longhaul.wakes w using (thread_id) where thread_id = $1",
      [threadId],
    );
    expect(row).toEqual({ state: "due", reason: "started" });
    expect((await graph.invoke(null, thread(threadId))).log).toEqual(["o1"]);
    // Delivered again after its end, with a body that says something else: still that run.
    const late = await startRun(ledger, graph, { input: { order: "o1", tries: 2 }, trigger: trigger("e1") });
    expect(late).toEqual({ threadId, started: false });
  });

  it("gives its input to the first run alone, in place of null", async () => {
    const ran: string[] = [];
    const graph = orders(ledger, undefined, ran);
    const { threadId } = await startRun(ledger, graph, { input: { order: "o2" }, threadId: "once" });
    await Promise.allSettled([graph.invoke(null, thread(threadId)), graph.invoke(null, thread(threadId))]);
    await graph.invoke(null, thread(threadId));
    expect(ran).toEqual(["o2"]);
    // A later turn is new work, as on any thread.
    await graph.invoke({ order: "o2" }, thread(threadId));
    expect(ran).toEqual(["o2", "o2"]);
  });

  it("gives it again to a run whose process died before its first checkpoint", async () => {
    const graph = orders(ledger);
    await startRun(ledger, graph, { input: { order: "o3" }, threadId: "died" });
    await db.sql(
      "update longhaul.threads set state = 'running', epoch = 1, lease_until = longhaul.ledger_now() where thread_id = 'died'",
    );
    await db.sql("delete from longhaul.wakes where thread_id = 'died'");
    expect((await graph.invoke(null, thread("died"))).log).toEqual(["o3"]);
  });

  it("does not give it again when the thread's checkpoints are deleted", async () => {
    const ran: string[] = [];
    const graph = orders(ledger, undefined, ran);
    const start = { input: { order: "o10" }, trigger: trigger("e10") };
    const { threadId } = await startRun(ledger, graph, start);
    await graph.invoke(null, thread(threadId));
    const saver = graph.checkpointer as BaseCheckpointSaver;
    await saver.deleteThread(threadId);
    await expect(graph.invoke(null, thread(threadId))).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect([ran, await startRun(ledger, graph, start)]).toEqual([["o10"], { threadId, started: false }]);
  });

  it("gives it after an edit of the state, and with another checkpointer", async () => {
    const graph = orders(ledger);
    await startRun(ledger, graph, { input: { order: "o4" }, threadId: "edited" });
    await graph.updateState(thread("edited"), { log: ["by hand"] });
    expect((await graph.invoke(null, thread("edited"))).log).toEqual(["by hand", "o4"]);

    const builder = new StateGraph(State).addNode("n", async ({ order }) => ({ log: [order] })).addEdge(START, "n");
    const foreign = durableGraph(builder.compile({ checkpointer: new MemorySaver() }), { ledger });
    await startRun(ledger, foreign, { input: { order: "o5" }, threadId: "foreign" });
    expect((await foreign.invoke(null, thread("foreign"))).log).toEqual(["o5"]);
    expect((await foreign.invoke(null, thread("foreign"))).log).toEqual(["o5"]);
  });

  it("refuses a thread id that was started with another graph or input, by name", async () => {
    const graph = orders(ledger, "fulfil");
    const start = { input: { order: "o6" }, threadId: "taken" };
    expect(await startRun(ledger, graph, start)).toEqual({ threadId: "taken", started: true });
    expect(await startRun(ledger, graph, start)).toEqual({ threadId: "taken", started: false });
    const other = { ...start, input: { order: "o7" } };
    const conflict = (message: RegExp) => ({
      code: "START_CONFLICT",
      status: 409,
      message: expect.stringMatching(message),
    });
    await expect(startRun(ledger, graph, other)).rejects.toMatchObject(
      conflict(/Thread "taken" was started with another input/),
    );
    await expect(startRun(ledger, orders(ledger, "refund"), start)).rejects.toMatchObject(
      conflict(/"fulfil", and cannot start "refund"/),
    );
    await expect(startRun(ledger, graph, { ...start, trigger: trigger("e9") })).rejects.toMatchObject(
      conflict(/by no event/),
    );
    await expect(graph.invoke({ order: "o7" }, thread("taken"))).rejects.toMatchObject(conflict(/has taken yet/));
    expect((await graph.invoke({ order: "o6" }, thread("taken"))).log).toEqual(["o6"]);
    await orders(ledger).invoke({ order: "x" }, thread("ran before"));
    await expect(startRun(ledger, graph, { ...start, threadId: "ran before" })).rejects.toMatchObject(
      conflict(/has run already/),
    );
  });

  it("refuses an event that has started another graph, and does not lose it silently", async () => {
    const start = { input: { order: "o8" }, trigger: trigger("e8") };
    await startRun(ledger, orders(ledger, "fulfil"), start);
    await expect(startRun(ledger, orders(ledger, "refund"), start)).rejects.toMatchObject({
      message: expect.stringMatching(
        /The event "e8" of "shop" has started the graph "fulfil" on thread ".+", and cannot start "refund"/,
      ),
    });
  });

  it("carries messages, and stores the input through the ledger's codec", async () => {
    const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0x5a);
    const secret = db.openLedger({ bodyCodec: { encode: flip, decode: flip } });
    const builder = new StateGraph(MessagesAnnotation).addNode("n", async () => ({})).addEdge(START, "n");
    const graph = durableGraph(builder, { ledger: secret });
    await startRun(secret, graph, {
      input: { messages: [new HumanMessage("a secret")] },
      threadId: "secret",
      tenant: "t1",
    });
    const [row] = await db.sql<{ input: Buffer; tenant: string }>(
      "select input, tenant from longhaul.starts where thread_id = 'secret'",
    );
    expect([row?.input.includes("a secret"), row?.tenant]).toEqual([false, "t1"]);
    const { messages } = await graph.invoke(null, thread("secret"));
    expect(messages.map((message) => [message.getType(), message.content])).toEqual([["human", "a secret"]]);
  });

  it("that was cancelled before any run took it is never run", async () => {
    const ran: string[] = [];
    const graph = orders(ledger, undefined, ran);
    await startRun(ledger, graph, { input: { order: "o9" }, threadId: "stopped" });
    expect(await cancelRun(ledger, { threadId: "stopped", by: "ann" })).toMatchObject({
      result: "cancelled",
      applied: true,
    });
    await expect(graph.invoke(null, thread("stopped"))).rejects.toMatchObject({ code: "CANCELLED" });
    expect(await db.sql("select from longhaul.wakes where thread_id = 'stopped'")).toEqual([]);
    expect(ran).toEqual([]);
  });

  it.each([
    ["no input", { input: null }],
    ["undefined", { input: undefined }],
    ["a Command", { input: new Command({ goto: "work" }) }],
    ["a function", { input: { order: () => 1 } }],
    ["an empty thread id", { input: {}, threadId: "" }],
    ["an empty event id", { input: {}, trigger: { source: "shop", eventId: "" } }],
    ["an event without a source", { input: {}, trigger: { eventId: "e" } as never }],
    ["a number for an event id", { input: {}, trigger: { source: "shop", eventId: 7 as never } }],
    ["a misspelt option", { input: {}, threadID: "x" }],
  ])("refuses %s, and orders nothing", async (_what, request) => {
    const before = await db.sql("select from longhaul.starts");
    await expect(startRun(ledger, orders(ledger), request)).rejects.toMatchObject({ status: 400 });
    expect(await db.sql("select from longhaul.starts")).toHaveLength(before.length);
  });

  it("refuses a graph that is not durable on this ledger", async () => {
    await expect(startRun(ledger, orders(db.openLedger()), { input: {} })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(startRun(ledger, {}, { input: {} })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});
