// RET-01 (gfargo/coco#1677, mpfaffenberger/code_puppy#317): retry layers multiply.
import { createDeepAgent } from "deepagents";
import { createAgent, modelRetryMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { durableGraph, durableModel } from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { chat } from "../agents/agents.js";
import { agentHarness, ask, modelStepsOf, thread } from "../agents/harness.js";

const harness = agentHarness();

/** With LangChain's own six retries inside. */
const model = () => chat(harness.world(""), { maxRetries: undefined });
const makers = { createAgent, deepagents: createDeepAgent as unknown as typeof createAgent };
const retryMiddleware = () =>
  modelRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false, onFailure: "error" });

describe.each(Object.keys(makers) as (keyof typeof makers)[])("RET-01: %s", (kind) => {
  const run = async (id: string, made: object) => {
    harness.model.beforeAnswer = () => 503;
    const agent = durableGraph(makers[kind](made as never), {
      ledger: harness.db.openLedger(),
      budget: { modelCalls: 50 },
    });
    await expect(agent.invoke(ask({}), thread(id))).rejects.toThrow(/503/);
    const spent = await harness.db.sql<{ n: string }>(
      "select spent_model_calls as n from longhaul.budgets where scope = $1",
      [id],
    );
    const attempts = (await modelStepsOf(harness.db, id)).map(({ attempt }) => attempt);
    return { requests: harness.model.requests.length, spent: Number(spent[0]?.n), attempts };
  };

  it("RET-01: three tries are three requests, whatever the model's own retries, and each is counted", async () => {
    const middleware = [durableAgent()];
    const made = { model: durableModel(model(), { retry: { failures: 3 } }), tools: [], middleware };
    expect(await run(`${kind} pack`, made)).toEqual({ requests: 3, spent: 3, attempts: [3] });
  });

  it.each([
    ["before", (ours: ReturnType<typeof durableAgent>) => [retryMiddleware(), ours]],
    ["after", (ours: ReturnType<typeof durableAgent>) => [ours, retryMiddleware()]],
  ] as const)(
    "RET-01: LangChain's retry middleware %s ours is the one layer that tries again",
    async (where, order) => {
      const made = { model: model(), tools: [], middleware: order(durableAgent()) };
      const { requests, spent } = await run(`${kind} middleware ${where}`, made);
      expect({ requests, spent }).toEqual({ requests: 3, spent: 3 });
    },
  );
});
