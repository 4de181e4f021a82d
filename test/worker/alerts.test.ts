// `onAlert`: what is wrong is told once, by one process of many, and is told again when it comes back.
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, expect, it } from "vitest";
import { type Alert, durableGraph, durableNode, type Ledger, settle } from "../../src/index.js";
import { databaseOf } from "../../src/openLedger.js";
import { newAlerts } from "../../src/sweep/alerts.js";
import { sweepInTurn } from "../../src/sweep/sweepDatabase.js";
import { advanceClock } from "../../src/testing/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({ to: Annotation<string> });
const lost = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
const kinds = (alerts: readonly Alert[]) => alerts.map(({ kind, subject }) => `${kind} ${subject}`);
const look = async () => newAlerts(await databaseOf(ledger));

function graphOf(run: () => Promise<string>, budget?: { toolCalls: number }) {
  const node = durableNode(State, async ({ to }, { step }) => ({ to: await step.write("pay", { to }, run) }));
  return durableGraph(new StateGraph(State).addNode("pay", node).addEdge(START, "pay"), {
    ledger,
    ...(budget && { budget }),
  });
}

it("a write in doubt is told after a minute, once, again after an hour, and not when it is settled", async () => {
  const graph = graphOf(() => Promise.reject(lost()));
  await graph.invoke({ to: "ann" }, { configurable: { thread_id: "doubt" } });
  expect(await look()).toEqual([]);
  await advanceClock(ledger, 61_000);
  const told = await look();
  expect(told).toMatchObject([{ kind: "in-doubt", threadId: "doubt" }]);
  expect(told[0]?.message).not.toContain("ann");
  expect(await look()).toEqual([]);
  await advanceClock(ledger, 3_601_000);
  expect(kinds(await look())).toEqual(kinds(told));
  const idempotencyKey = told[0]?.subject ?? "";
  await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "paid" });
  await graph.invoke(null, { configurable: { thread_id: "doubt" } });
  await advanceClock(ledger, 10_000);
  expect(await look()).toEqual([]);
  expect(await db.sql("select * from longhaul.alerts", [])).toEqual([]);
});

it("of ten processes that look at once one tells", async () => {
  const graph = graphOf(() => Promise.reject(lost()));
  await graph.invoke({ to: "bob" }, { configurable: { thread_id: "race" } });
  await advanceClock(ledger, 61_000);
  const told = await Promise.all(Array.from({ length: 10 }, look));
  expect(told.flat()).toHaveLength(1);
});

it("a thread that is due and that nobody runs is stuck, and a run that failed has failed", async () => {
  const graph = graphOf(() => Promise.reject(Object.assign(new Error("no such account"), { status: 404 })));
  await expect(graph.invoke({ to: "eve" }, { configurable: { thread_id: "fails" } })).rejects.toThrow();
  await db.sql(
    "insert into longhaul.wakes (thread_id, due_at, reason) values ('late', longhaul.ledger_now() - interval '2 minutes', 'test')",
    [],
  );
  expect(kinds(await look()).sort()).toEqual(["failed fails", "stuck late"]);
});

it("the hook hears of it from whoever sweeps, and one that throws harms nothing", async () => {
  const heard: Alert[] = [];
  const own = db.openLedger({
    onAlert: (alert) => {
      heard.push(alert);
      throw new Error("a hook that throws");
    },
  });
  await db.sql("delete from longhaul.alerts", []);
  const warned = new Promise<string>((resolve) => process.once("warning", ({ message }) => resolve(message)));
  await sweepInTurn(await databaseOf(own), 1000);
  expect(heard.map(({ kind }) => kind)).toContain("stuck");
  expect(await warned).toContain("onAlert threw");
});

it("a budget of which less than a fifth is left is told while its thread runs", async () => {
  const graph = graphOf(
    async () => {
      await db.sql("update longhaul.budgets set spent_tool_calls = 9 where thread_id = 'dear'", []);
      expect(kinds(await look())).toEqual(["budget-near dear"]);
      return "paid";
    },
    { toolCalls: 10 },
  );
  await graph.invoke({ to: "dan" }, { configurable: { thread_id: "dear" } });
  expect(await look()).toEqual([]);
});
