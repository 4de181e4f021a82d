// LangChain's own middleware beside ours: nothing is retried twice, no pause is swallowed, and what it asks a model is counted.
import { tool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import {
  createAgent,
  humanInTheLoopMiddleware,
  modelCallLimitMiddleware,
  modelFallbackMiddleware,
  summarizationMiddleware,
  toolCallLimitMiddleware,
  toolErrorMiddleware,
  toolRetryMiddleware,
} from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel, raiseBudget } from "../../src/index.js";
import { type DurableAgentMiddleware, durableAgent } from "../../src/langchain/index.js";
import { chat } from "./agents.js";
import { agentHarness, ask, lastText, modelStepsOf, outcome, thread } from "./harness.js";

const harness = agentHarness();
const model = () => chat(harness.world(""));
const ledger = () => harness.db.openLedger();

/** A tool that notes its calls; with `fails` it throws. */
function noting(did: string[], fails = false) {
  return tool(
    async ({ n }: { n: number }) => {
      did.push(`note ${n}`);
      if (fails) throw Object.assign(new Error("no such thing"), { status: 404 });
      return `noted ${n}`;
    },
    { name: "note", description: "Notes.", schema: z.object({ n: z.number() }) },
  );
}
const ours = (effect: "read" | "write" = "read") =>
  durableAgent({ tools: { note: { version: effect === "read" ? "1.0.0" : "2.0.0", effect } } });
/** LangChain's own middleware does not fit its own types under exactOptionalPropertyTypes. */
const loose = (middleware: readonly unknown[]) => middleware as readonly DurableAgentMiddleware[];
const NOTE = (n: number) => [{ name: "note", args: { n } }];

describe("the human in the loop of LangChain", () => {
  it("pauses before the tools, takes its answer, and the approved call happens once", async () => {
    const did: string[] = [];
    const middleware = [humanInTheLoopMiddleware({ interruptOn: { note: true } } as never), ours("write")];
    const agent = durableGraph(createAgent({ model: model(), tools: [noting(did)], middleware: loose(middleware) }), {
      ledger: ledger(),
    });
    const paused = outcome(await agent.invoke(ask({ main: [NOTE(1)] }), thread("hitl")));
    expect(paused.__interrupt__).toMatchObject([{ value: { actionRequests: [{ name: "note" }] } }]);
    expect(did).toEqual([]);
    const result = await agent.invoke(new Command({ resume: { decisions: [{ type: "approve" }] } }), thread("hitl"));
    expect(lastText(result)).toBe("done");
    expect(did).toEqual(["note 1"]);
    expect(harness.model.requests).toHaveLength(2);
  });
});

describe("the limits of LangChain", () => {
  it("end the agent as they do without us", async () => {
    const did: string[] = [];
    const limits = [
      modelCallLimitMiddleware({ runLimit: 2, exitBehavior: "end" } as never),
      toolCallLimitMiddleware({ runLimit: 5 } as never),
    ];
    const made = (middleware: readonly unknown[]) =>
      createAgent({ model: model(), tools: [noting(did)], middleware: loose(middleware) });
    const plan = ask({ main: [NOTE(1), NOTE(2), NOTE(3)] });
    const stock = await made(limits).invoke(plan);
    const durable = durableGraph(made([...limits, ours()]), { ledger: ledger() });
    const result = await durable.invoke(plan, thread("limits"));
    expect(lastText(result)).toBe(lastText(stock));
    expect(harness.model.requests).toHaveLength(4);
  });
});

describe("an error of a tool", () => {
  const plan = ask({ main: [NOTE(1)] });
  const answerOf = (result: unknown) => outcome(result).messages.find((message) => message.getType() === "tool");

  it("is answered as the stock agent answers it", async () => {
    const stock = createAgent({ model: model(), tools: [noting([], true)] });
    const expected = answerOf(await stock.invoke(plan));
    expect(expected?.text).toContain("Please fix your mistakes");
    const agent = createAgent({ model: model(), tools: [noting([], true)], middleware: [ours()] });
    const result = await durableGraph(agent, { ledger: ledger() }).invoke(plan, thread("error"));
    expect(answerOf(result)).toMatchObject({ content: expected?.content, status: "error", name: "note" });
  });

  it("of arguments that do not fit its schema is answered as the stock agent answers it, and nothing is recorded", async () => {
    const misfit = ask({ main: [[{ name: "note", args: { n: "one" } }]] });
    const stock = answerOf(await createAgent({ model: model(), tools: [noting([])] }).invoke(misfit));
    const agent = createAgent({ model: model(), tools: [noting([])], middleware: [ours("write")] });
    const result = await durableGraph(agent, { ledger: ledger() }).invoke(misfit, thread("misfit"));
    expect(answerOf(result)?.text.slice(0, 60)).toBe(stock?.text.slice(0, 60));
    expect(await harness.db.sql("select 1 from longhaul.steps where thread_id = 'misfit' and kind = 'tool'")).toEqual(
      [],
    );
  });

  it.each(["before", "after"] as const)(
    "is tried by LangChain's retry middleware %s ours without another request",
    async (where) => {
      const did: string[] = [];
      const retry = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false });
      const middleware = where === "before" ? ([retry, ours("write")] as const) : ([ours("write"), retry] as const);
      const agent = createAgent({ model: model(), tools: [noting(did, true)], middleware: loose(middleware) });
      const result = await durableGraph(agent, { ledger: ledger() }).invoke(plan, thread(`retried ${where}`));
      expect(did).toEqual(["note 1"]);
      expect(answerOf(result)).toMatchObject({ status: "error" });
      expect(lastText(result)).toBe("done");
    },
  );

  it("is answered by LangChain's error middleware where there is one", async () => {
    const answered = toolErrorMiddleware({
      onError: (error) => `sorry: ${(error as { cause?: Error }).cause?.message}`,
    });
    const agent = createAgent({ model: model(), tools: [noting([], true)], middleware: loose([answered, ours()]) });
    const result = await durableGraph(agent, { ledger: ledger() }).invoke(plan, thread("answered"));
    expect(answerOf(result)?.text).toContain("sorry: ");
  });

  it("that stands for a mistake in the code, or for a missing durableGraph, ends the agent", async () => {
    const agent = createAgent({ model: model(), tools: [noting([])], middleware: [ours()] });
    await expect(agent.invoke(plan, thread("bare"))).rejects.toThrow(/runs outside a durable graph.*durableGraph/);
    expect(harness.model.requests).toHaveLength(0);
  });
});

describe("LangChain's fallback", () => {
  it("answers with its model when ours has failed, and that call is recorded too", async () => {
    harness.model.beforeAnswer = ({ model: name }) => (name === "gpt-4.1-mini" ? 401 : 200);
    const fallback = modelFallbackMiddleware(chat(harness.world(""), { model: "gpt-4.1" }));
    const agent = createAgent({ model: model(), tools: [noting([])], middleware: loose([fallback, ours()]) });
    const durable = durableGraph(agent, { ledger: ledger() });
    expect(lastText(await durable.invoke(ask({}), thread("fallback")))).toBe("done");
    expect(harness.model.requests.map((request) => request.model)).toEqual(["gpt-4.1-mini", "gpt-4.1"]);
    const states = (await modelStepsOf(harness.db, "fallback")).map(({ state }) => state);
    expect(states).toEqual(["READY", "SUCCEEDED"]);
  });

  it("gives no second model where a budget has stopped the first", async () => {
    const fallback = modelFallbackMiddleware(chat(harness.world(""), { model: "gpt-4.1" }));
    const agent = createAgent({ model: model(), tools: [noting([])], middleware: loose([fallback, ours()]) });
    const durable = durableGraph(agent, { ledger: ledger(), budget: { modelCalls: 1 } });
    const paused = outcome(await durable.invoke(ask({ main: [NOTE(1)] }), thread("fallback budget")));
    expect(paused.__interrupt__).toMatchObject([{ value: { kind: "BUDGET_EXCEEDED" } }]);
    expect(harness.model.requests).toHaveLength(1);
  });
});

describe("LangChain's summaries", () => {
  const made = (summarizer: ReturnType<typeof model>) => {
    const summaries = summarizationMiddleware({
      model: summarizer,
      trigger: { messages: 3 },
      keep: { messages: 2 },
    } as never);
    return createAgent({ model: model(), tools: [noting([])], middleware: loose([summaries, ours()]) });
  };
  const plan = ask({ main: [NOTE(1), NOTE(2)] });

  it.each([
    ["a plain model", () => model()],
    ["a durable model", () => durableModel(model())],
  ] as const)("by %s are counted by the budget", async (kind, summarizer) => {
    const durable = durableGraph(made(summarizer()), { ledger: ledger(), budget: { modelCalls: 50 } });
    await durable.invoke(plan, thread(`summary ${kind}`));
    const summaries = harness.model.requests.filter(({ messages }) =>
      JSON.stringify(messages).includes("Context Extraction"),
    );
    expect(summaries.length).toBeGreaterThan(0);
    const [row] = await harness.db.sql("select spent_model_calls from longhaul.budgets where scope = $1", [
      `summary ${kind}`,
    ]);
    expect(row).toEqual({ spent_model_calls: String(harness.model.requests.length) });
  });

  it("do not swallow the pause of a budget: no error text becomes the history", async () => {
    const on = ledger();
    const durable = durableGraph(made(model()), { ledger: on, budget: { modelCalls: 1 } });
    const paused = outcome(await durable.invoke(plan, thread("summary stopped")));
    expect(paused.__interrupt__).toMatchObject([{ value: { kind: "BUDGET_EXCEEDED" } }]);
    expect(paused.messages.map((message) => message.getType())).toEqual(["human", "ai", "tool"]);
    await raiseBudget(on, { threadId: "summary stopped", by: "ann", modelCalls: 20 });
    const texts = outcome(await durable.invoke(null, thread("summary stopped"))).messages.map(({ text }) => text);
    expect(texts.join()).not.toContain("Error generating");
  });
});
