// Real agents of every kind: killed in the middle they go on and repeat nothing, and a budget stops them wherever the call is made.
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { raiseBudget } from "../../src/index.js";
import { startScript } from "../support/script.js";
import type { AgentTask } from "./agent.child.js";
import { KINDS, type Kind, makeAgent, PLANS } from "./agents.js";
import { agentHarness } from "./harness.js";
import { planned } from "./plannedModel.js";

const harness = agentHarness();
const kinds = Object.keys(KINDS) as Kind[];

/** What the user says: a deep agent's subagent is told its part of the plan in its task. */
function saying(kind: Kind): string {
  const { plan } = PLANS[kind];
  if (kind !== "deepAgent" && kind !== "deepAgentByParts") return planned(plan);
  const { main, helper } = PLANS[kind].plan;
  const [[call]] = main;
  // The built-in subagent has no name of its own in its prompt.
  const inner = kind === "deepAgent" ? { helper } : { main: helper };
  return planned({ main: [[{ ...call, args: { ...call.args, description: planned(inner) } }]] });
}

function task(kind: Kind, thread: string, say: string | null): AgentTask {
  const mcpServer = join(inject("scripts"), "test/agents/mcpServer.js");
  return {
    kind,
    thread,
    say,
    url: harness.db.url,
    modelUrl: harness.model.url,
    worldUrl: harness.outside.url,
    mcpServer,
  };
}

const start = (given: AgentTask) => startScript("test/agents/agent.child.ts", [JSON.stringify(given)]);

/** Runs the agent and kills it when `at` says so; then lets another process go on. */
async function killAndResume(kind: Kind, thread: string, at: (kill: () => void) => void) {
  const first = start(task(kind, thread, saying(kind)));
  at(() => first.child.kill("SIGKILL"));
  expect(await first.ended).toMatchObject({ signal: "SIGKILL" });
  at(() => undefined);
  await harness.db.advance(60_000);
  const second = await start(task(kind, thread, null)).ended;
  expect(second.lines.at(-1), second.stderr).toMatchObject({ last: "done" });
}

describe.each(kinds)("%s", (kind) => {
  it("killed after a tool's effect goes on without repeating an effect, a read or a paid answer", async () => {
    const thread = `${kind}-tool`;
    await killAndResume(kind, thread, (kill) => {
      harness.outside.beforeAnswer = kill;
    });
    expect(harness.outside.paymentsOf(thread)).toHaveLength(1);
    expect(harness.outside.count("page", thread)).toBe(2);
    expect(harness.model.requests).toHaveLength(PLANS[kind].modelCalls);
  });

  it("killed while its model answers asks for that answer again, and for no other", async () => {
    const thread = `${kind}-model`;
    await killAndResume(kind, thread, (kill) => {
      harness.model.beforeAnswer = (_request, nth) => {
        if (nth === 4) kill();
        return undefined;
      };
    });
    expect(harness.outside.paymentsOf(thread)).toHaveLength(1);
    expect(harness.outside.count("page", thread)).toBe(2);
    expect(harness.model.requests).toHaveLength(PLANS[kind].modelCalls + 1);
  });

  it("stops at its budget, whichever of its agents would pass it, and goes on when it is raised", async () => {
    const thread = `${kind}-budget`;
    const ledger = harness.db.openLedger();
    const world = task(kind, thread, "");
    const agent = await makeAgent(kind, world, { ledger, budget: { modelCalls: 3 } });
    const config = { configurable: { thread_id: thread } };
    const paused = await agent.invoke({ messages: [{ role: "user", content: saying(kind) }] }, config);
    expect(paused["__interrupt__"]).toMatchObject([
      { value: { kind: "BUDGET_EXCEEDED", limit: "modelCalls", spent: "3" } },
    ]);
    expect(harness.model.requests).toHaveLength(3);
    await raiseBudget(ledger, { threadId: thread, by: "ann", modelCalls: 10 });
    const { messages } = await agent.invoke(null, config);
    expect((messages as { text: string }[]).at(-1)?.text).toBe("done");
    expect(harness.model.requests).toHaveLength(PLANS[kind].modelCalls);
    expect(harness.outside.paymentsOf(thread)).toHaveLength(1);
  });
});
