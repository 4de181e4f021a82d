// Deadlines that pass while a thread sleeps, while it waits for a person, and while a call is under way.
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  approvalNode,
  drainReason,
  durableGraph,
  durableNode,
  type Ledger,
  raiseBudget,
  type ThreadBudget,
} from "../../src/index.js";
import { sweep } from "../../src/worker/index.js";
import { deferred, State, status, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const HOUR = 3_600_000;
/** The ledger's clock may have been moved by a test before. */
const inMs = async (ms: number) => {
  const [row] = await db.sql<{ now: Date }>("select longhaul.ledger_now() as now");
  return new Date((row?.now.getTime() ?? 0) + ms);
};
const rowOf = async (threadId: string) =>
  (
    await db.sql(
      `select t.state, t.error->>'code' as code, (select w.reason from longhaul.wakes w where w.thread_id = t.thread_id) as wake,
         b.exceeded_at is not null as exceeded from longhaul.threads t join longhaul.budgets b on b.scope = t.thread_id where t.thread_id = $1`,
      [threadId],
    )
  )[0];
const budgetEvents = (threadId: string) =>
  db.sql("select kind, detail->>'limit' as limit from longhaul.budget_events where scope = $1 order by id", [threadId]);
const requests = async (threadId: string) =>
  (
    await db.sql<{ status: string }>("select status from longhaul.approvals where thread_id = $1 order by seq", [
      threadId,
    ])
  ).map((row) => row.status);

/** A graph that asks a person, and sums up where its budget says so. */
function asking(budget: ThreadBudget, on: Ledger = ledger) {
  const builder = new StateGraph(State)
    .addNode(
      "ask",
      approvalNode({
        request: () => ({ action: "go", args: {} }),
        decided: ({ status: said }) => ({ log: [said] }),
      }),
    )
    .addNode("sum up", async () => ({ log: ["summed up"] }))
    .addEdge(START, "ask")
    .addConditionalEdges("ask", () => END, ["sum up", END])
    .addEdge("sum up", END);
  return durableGraph(builder, { ledger: on, budget });
}

const sumUp = { onExceeded: "finish", wrapUp: { node: "sum up" } } as const;

describe("a deadline that passes while a thread waits for a person", () => {
  it("shows that the budget is used up, leaves the question open, and goes on when it is moved", async () => {
    const graph = asking({ deadline: await inMs(HOUR) });
    await graph.invoke({ log: [] }, thread("paused"));
    expect(await sweep(ledger)).toMatchObject({ deadlines: 0 });
    await db.advance(HOUR + 1);
    expect(await sweep(ledger)).toMatchObject({ deadlines: 1 });
    expect(await sweep(ledger)).toMatchObject({ deadlines: 0 });
    expect(await rowOf("paused")).toEqual({ state: "waiting", code: "BUDGET_EXCEEDED", wake: null, exceeded: true });
    expect(await budgetEvents("paused")).toEqual([{ kind: "exceeded", limit: "deadline" }]);
    expect(await requests("paused")).toEqual(["pending"]);
    expect((await longhaul(db.url, "runs")).lines.find(({ threadId }) => threadId === "paused")).toMatchObject({
      state: "waiting",
      error: { message: expect.stringContaining("deadline") },
    });

    const [request] = await db.sql<{ id: string }>("select id from longhaul.approvals where thread_id = 'paused'");
    await longhaul(db.url, "approvals", "approve", request?.id ?? "", "--by", "ann");
    expect(await graph.invoke(null, thread("paused"))).toMatchObject({
      __interrupt__: [{ value: { kind: "BUDGET_EXCEEDED", limit: "deadline" } }],
    });
    const later = (await inMs(HOUR)).toISOString();
    const raised = await longhaul(db.url, "budget", "raise", "paused", "--deadline", later, "--by", "ann");
    expect([raised.code, raised.lines]).toMatchObject([0, [{ allowed: { deadline: later } }]]);
    expect(await rowOf("paused")).toMatchObject({ wake: "its budget was raised", exceeded: false });
    expect((await graph.invoke(null, thread("paused"))).log).toEqual(["approved"]);
    expect((await longhaul(db.url, "budget", "history", "paused")).lines.at(-1)).toMatchObject({
      kind: "raised",
      by: "ann",
      detail: { deadline: expect.any(String) },
    });
  });

  it("fails the thread where the budget says so, and closes what it asked", async () => {
    const graph = asking({ deadline: await inMs(HOUR), onExceeded: "fail" });
    await graph.invoke({ log: [] }, thread("fails"));
    await db.advance(HOUR + 1);
    await sweep(ledger);
    expect(await rowOf("fails")).toEqual({ state: "failed", code: "BUDGET_EXCEEDED", wake: null, exceeded: true });
    expect(await requests("fails")).toEqual(["cancelled"]);
    await raiseBudget(ledger, { threadId: "fails", deadline: await inMs(HOUR), by: "ann" });
    expect(await graph.invoke(null, thread("fails"))).toHaveProperty("__interrupt__");
    expect(await requests("fails")).toEqual(["cancelled", "pending"]);
  });

  it("wakes the thread to finish with what there is", async () => {
    const graph = asking({ deadline: await inMs(HOUR), ...sumUp });
    await graph.invoke({ log: [] }, thread("finishes"));
    await db.advance(HOUR + 1);
    await sweep(ledger);
    expect(await rowOf("finishes")).toMatchObject({ state: "waiting", wake: "its deadline is over" });
    expect((await graph.invoke(null, thread("finishes"))).log).toEqual(["summed up"]);
    expect(await requests("finishes")).toEqual(["superseded"]);
    expect(await rowOf("finishes")).toMatchObject({ state: "done", wake: null });
  });

  it("is acted on once by many sweepers, and leaves alone what is done", async () => {
    const deadline = await inMs(HOUR);
    await asking({ deadline }).invoke({ log: [] }, thread("many"));
    const done = durableGraph(new StateGraph(State).addNode("n", async () => ({})).addEdge(START, "n"), {
      ledger,
      budget: { deadline, onExceeded: "fail" },
    });
    await done.invoke({ log: [] }, thread("done"));
    await db.advance(HOUR + 1);
    const found = await Promise.all([1, 2, 3, 4].map(() => sweep(db.openLedger())));
    expect(found.reduce((sum, { deadlines = 0 }) => sum + deadlines, 0)).toBe(1);
    expect(await rowOf("done")).toMatchObject({ state: "done", exceeded: false });
    expect(await budgetEvents("many")).toHaveLength(1);
  });
});

it("A deadline that passes before a scheduled retry fails the thread then, not at the retry", async () => {
  const work = durableNode(State, async (_, { step }) => {
    await step.write("send", 1, async () => {
      throw Object.assign(status(503), { headers: { "retry-after": "86000" } });
    });
    return {};
  });
  const builder = new StateGraph(State).addNode("work", work).addEdge(START, "work");
  const budget: ThreadBudget = { deadline: await inMs(HOUR), onExceeded: "fail" };
  await durableGraph(builder, { ledger, budget })
    .invoke({ log: [] }, thread("sleeps"))
    .catch(() => undefined);
  expect(await rowOf("sleeps")).toMatchObject({ state: "due" });
  await db.advance(HOUR + 1);
  await sweep(ledger);
  expect(await rowOf("sleeps")).toMatchObject({ state: "failed", code: "BUDGET_EXCEEDED", wake: null });
});

/** A graph whose node hangs in a write until its signal fires. */
function hanging(budget: ThreadBudget, on: Ledger) {
  const started = deferred();
  const told: number[] = [];
  const node = durableNode(State, async (_, { step }) => {
    const sent = await step.write("hang", 1, ({ signal }) => {
      started.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          told.push(performance.now());
          reject(new Error("aborted"));
        });
      });
    });
    return { log: [String(sent)] };
  });
  const builder = new StateGraph(State)
    .addNode("hang", node)
    .addNode("sum up", async () => ({ log: ["summed up"] }))
    .addEdge(START, "hang")
    .addConditionalEdges("hang", () => END, ["sum up", END])
    .addEdge("sum up", END);
  return { graph: durableGraph(builder, { ledger: on, budget }), started, told };
}

describe("a deadline that passes while a call hangs", () => {
  it("tells the call within a second, and the thread waits for more time; what was sent is in doubt", async () => {
    const { graph, told } = hanging({ deadline: await inMs(700) }, db.openLedger());
    const from = performance.now();
    const error: unknown = await graph.invoke({ log: [] }, thread("hangs")).catch((thrown: unknown) => thrown);
    expect(drainReason(error)).toMatchObject({ kind: "limit", threadId: "hangs" });
    expect((told[0] ?? Number.POSITIVE_INFINITY) - from).toBeLessThan(1700);
    expect(await rowOf("hangs")).toMatchObject({ state: "waiting", code: "BUDGET_EXCEEDED", exceeded: true });
    expect(await stepsOf(db, "hangs")).toMatchObject([{ state: "NEEDS_RECONCILIATION", doubt: true }]);
  });

  it("fails, or ends with what there is, where the budget says so", async () => {
    const failing = hanging({ deadline: await inMs(500), onExceeded: "fail" }, db.openLedger());
    await expect(failing.graph.invoke({ log: [] }, thread("hangs, fails"))).rejects.toMatchObject({
      code: "BUDGET_EXCEEDED",
    });
    const finishing = hanging({ deadline: await inMs(500), ...sumUp }, db.openLedger());
    const error: unknown = await finishing.graph
      .invoke({ log: [] }, thread("hangs, finishes"))
      .catch((thrown: unknown) => thrown);
    expect(drainReason(error)).toMatchObject({ kind: "due" });
    expect(await rowOf("hangs, finishes")).toMatchObject({ state: "due", wake: "its deadline is over" });
    expect((await finishing.graph.invoke(null, thread("hangs, finishes"))).log).toEqual(["summed up"]);
  });

  it("goes by the ledger's clock, and by a deadline that was moved meanwhile", async () => {
    const { graph, started, told } = hanging({ deadline: await inMs(HOUR) }, db.openLedger({ leaseMs: 900 }));
    const running = graph.invoke({ log: [] }, thread("moved")).catch((thrown: unknown) => thrown);
    await started.promise;
    await raiseBudget(ledger, { threadId: "moved", deadline: await inMs(3 * HOUR), by: "ann" });
    const [before] = await db.sql<{ lease_until: Date }>(
      "select lease_until from longhaul.threads where thread_id = 'moved'",
    );
    const renewed = async () =>
      (await db.sql<{ lease_until: Date }>("select lease_until from longhaul.threads where thread_id = 'moved'"))[0]
        ?.lease_until;
    await expect.poll(renewed).not.toEqual(before?.lease_until);
    expect(told).toEqual([]);
    // By less than the lease at a time: it is the deadline that ends the run.
    await db.sql(
      "update longhaul.budgets set deadline = longhaul.ledger_now() + interval '100 ms' where scope = 'moved'",
    );
    expect(drainReason(await running)).toMatchObject({ kind: "limit" });
    expect(told).toHaveLength(1);
  });

  it("that is over before the run begins refuses its calls instead", async () => {
    const { graph, told } = hanging({ deadline: await inMs(-1000) }, db.openLedger());
    expect(await graph.invoke({ log: [] }, thread("late"))).toMatchObject({
      __interrupt__: [{ value: { limit: "deadline" } }],
    });
    expect(told).toEqual([]);
  });
});

it("A deadline is moved only to a later time, of a budget that has one", async () => {
  const graph = asking({ deadline: await inMs(HOUR) });
  await graph.invoke({ log: [] }, thread("later"));
  for (const deadline of [await inMs(HOUR / 2), await inMs(-HOUR), new Date(Number.NaN)]) {
    await expect(raiseBudget(ledger, { threadId: "later", deadline, by: "ann" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
  }
  await asking({ usd: 1 }).invoke({ log: [] }, thread("timeless"));
  await expect(
    raiseBudget(ledger, { threadId: "timeless", deadline: await inMs(HOUR), by: "ann" }),
  ).rejects.toMatchObject({ message: expect.stringContaining("no deadline") });
  // The code's own, given anew at every run, does not take away what a person gave.
  const later = await inMs(2 * HOUR);
  await raiseBudget(ledger, { threadId: "later", deadline: later, by: "ann" });
  await graph.invoke(null, thread("later"));
  const [row] = await db.sql("select deadline from longhaul.budgets where scope = 'later'");
  expect(row).toEqual({ deadline: later });
});
