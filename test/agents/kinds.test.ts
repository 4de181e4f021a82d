// Real agents of every kind: killed in the middle they go on and repeat nothing, and a budget stops them wherever the call is made.
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { raiseBudget } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startScript } from "../support/script.js";
import { type World as Outside, startWorld } from "../support/world.js";
import type { AgentTask } from "./agent.child.js";
import { KINDS, type Kind, makeAgent, PLANS } from "./agents.js";
import { type PlannedModel, planned, plannedModel } from "./plannedModel.js";

let db: TestDatabase;
let outside: Outside;
let model: PlannedModel;
beforeAll(async () => {
  db = await testDatabase();
  outside = await startWorld();
  model = await plannedModel();
});
afterAll(() => Promise.all([outside.close(), model.close()]));
beforeEach(() => {
  outside.beforeAnswer = () => {};
  model.beforeAnswer = () => undefined;
  model.requests.length = 0;
});

const kinds = Object.keys(KINDS) as Kind[];

/** What the user says: a deep agent's subagent is told its part of the plan in its task. */
function saying(kind: Kind): string {
  const { plan } = PLANS[kind];
  if (kind !== "deepAgent") return planned(plan);
  const { main, helper } = PLANS.deepAgent.plan;
  const [[call]] = main;
  return planned({ main: [[{ ...call, args: { ...call.args, description: planned({ helper }) } }]] });
}

function task(kind: Kind, thread: string, say: string | null): AgentTask {
  const mcpServer = join(inject("scripts"), "test/agents/mcpServer.js");
  return { kind, thread, say, url: db.url, modelUrl: model.url, worldUrl: outside.url, mcpServer };
}

const start = (given: AgentTask) => startScript("test/agents/agent.child.ts", [JSON.stringify(given)]);

/** Runs the agent and kills it when `at` says so; then lets another process go on. */
async function killAndResume(kind: Kind, thread: string, at: (kill: () => void) => void) {
  const first = start(task(kind, thread, saying(kind)));
  at(() => first.child.kill("SIGKILL"));
  expect(await first.ended).toMatchObject({ signal: "SIGKILL" });
  at(() => undefined);
  await db.advance(60_000);
  const second = await start(task(kind, thread, null)).ended;
  expect(second.lines.at(-1), second.stderr).toMatchObject({ last: "done" });
}

describe.each(kinds)("%s", (kind) => {
  it("killed after a tool's effect goes on without repeating an effect, a read or a paid answer", async () => {
    const thread = `${kind}-tool`;
    await killAndResume(kind, thread, (kill) => {
      outside.beforeAnswer = kill;
    });
    expect(outside.paymentsOf(thread)).toHaveLength(1);
    expect(outside.count("page", thread)).toBe(2);
    expect(model.requests).toHaveLength(PLANS[kind].modelCalls);
  });

  it("killed while its model answers asks for that answer again, and for no other", async () => {
    const thread = `${kind}-model`;
    await killAndResume(kind, thread, (kill) => {
      model.beforeAnswer = (_request, nth) => {
        if (nth === 4) kill();
        return undefined;
      };
    });
    expect(outside.paymentsOf(thread)).toHaveLength(1);
    expect(outside.count("page", thread)).toBe(2);
    expect(model.requests).toHaveLength(PLANS[kind].modelCalls + 1);
  });

  it("stops at its budget, whichever of its agents would pass it, and goes on when it is raised", async () => {
    const thread = `${kind}-budget`;
    const ledger = db.openLedger();
    const world = task(kind, thread, "");
    const agent = await makeAgent(kind, world, { ledger, budget: { modelCalls: 3 } });
    const config = { configurable: { thread_id: thread } };
    const paused = await agent.invoke({ messages: [{ role: "user", content: saying(kind) }] }, config);
    expect(paused["__interrupt__"]).toMatchObject([
      { value: { kind: "BUDGET_EXCEEDED", limit: "modelCalls", spent: "3" } },
    ]);
    expect(model.requests).toHaveLength(3);
    await raiseBudget(ledger, { threadId: thread, by: "ann", modelCalls: 10 });
    const { messages } = await agent.invoke(null, config);
    expect((messages as { text: string }[]).at(-1)?.text).toBe("done");
    expect(model.requests).toHaveLength(PLANS[kind].modelCalls);
    expect(outside.paymentsOf(thread)).toHaveLength(1);
  });
});
