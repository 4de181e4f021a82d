// Budgets of time: work is counted over runs and processes, waits are not, and an idle run is stopped.
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  BudgetExceededError,
  drainReason,
  durableGraph,
  durableNode,
  raiseBudget,
  type ThreadBudget,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const timeOf = async (threadId: string) => {
  const [row] = await db.sql<{ active: string; suspended: string; state: string }>(
    `select b.spent_active_ms as active, b.suspended_ms as suspended, t.state from longhaul.budgets b join longhaul.threads t using (thread_id)
     where scope = $1`,
    [threadId],
  );
  return { active: Number(row?.active), suspended: Number(row?.suspended), state: row?.state };
};

/** A graph whose node works for so long at a time, as often as it is told. */
function working(ms: number, times: number, budget: ThreadBudget) {
  return durableGraph(
    new StateGraph(State)
      .addNode(
        "work",
        durableNode(State, async (state, { step }) => {
          const key = String(state.log.length);
          await step.read("work", key, () => new Promise((resolve) => setTimeout(() => resolve(key), ms)));
          return { log: [key] };
        }),
      )
      .addEdge(START, "work")
      .addConditionalEdges("work", ({ log }) => (log.length < times ? "work" : END), ["work", END]),
    { ledger: db.openLedger(), budget },
  );
}

describe("a limit on working time", () => {
  it("stops the superstep after it is over, counts on in the next run, and goes on when it is raised", async () => {
    const graph = working(60, 4, { activeMs: 100 });
    const paused = await graph.invoke({ log: [] }, thread("active"));
    expect(paused).toMatchObject({
      __interrupt__: [{ value: { kind: "BUDGET_EXCEEDED", limit: "activeMs", allowed: "100" } }],
    });
    const { active } = await timeOf("active");
    expect(active).toBeGreaterThanOrEqual(100);
    await raiseBudget(db.openLedger(), { threadId: "active", activeMs: 60_000, by: "ann" });
    expect((await graph.invoke(null, thread("active"))).log).toEqual(["0", "1", "2", "3"]);
    expect((await timeOf("active")).active).toBeGreaterThan(active);
  });

  it("of 0 blocks the first superstep", async () => {
    const paused = await working(1, 1, { activeMs: 0 }).invoke({ log: [] }, thread("no time"));
    expect(paused).toMatchObject({ log: [], __interrupt__: [{ value: { limit: "activeMs" } }] });
  });
});

describe("a limit on idleness", () => {
  it("stops a run in which nothing begins or ends, and leaves the thread waiting", async () => {
    const graph = working(60_000, 1, { idleMs: 500 });
    const error: unknown = await graph.invoke({ log: [] }, thread("idle")).catch((thrown: unknown) => thrown);
    expect(drainReason(error)).toMatchObject({ kind: "idle", threadId: "idle" });
    expect(await timeOf("idle")).toMatchObject({ state: "waiting" });
  });

  it("fails where the budget says so", async () => {
    const graph = working(60_000, 1, { idleMs: 500, onExceeded: "fail" });
    await expect(graph.invoke({ log: [] }, thread("idle fails"))).rejects.toBeInstanceOf(BudgetExceededError);
  });
});
