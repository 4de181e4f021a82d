// What cannot work is said when the agent is made, with what to change; and the shape of an agent stays what it was.
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableTool } from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { checkPeer } from "../../src/langchain/peer.js";
import { chat } from "./agents.js";
import { agentHarness, ask, lastText, outcome, thread } from "./harness.js";

const harness = agentHarness();
const model = () => chat(harness.world(""));
const ledger = () => harness.db.openLedger();
const named = (name: string) => tool(async () => name, { name, description: name, schema: z.object({}) });
const READ = { version: "1.0.0", effect: "read" } as const;

describe("what is refused", () => {
  const refused = { code: "INVALID_OPTION" };
  it.each([
    [
      "a tool that nothing declares",
      () => createAgent({ model: model(), tools: [named("search")], middleware: [durableAgent()] }),
      /not declared: "search".*durableAgent\(\{ tools: \{ "search":/,
    ],
    [
      "a tool of one's own with the name of a file tool",
      () => createAgent({ model: model(), tools: [named("delete")], middleware: [durableAgent()] }),
      /not declared: "delete"/,
    ],
    [
      "an approval of a tool that is not there",
      () =>
        createAgent({
          model: model(),
          tools: [named("search")],
          middleware: [durableAgent({ tools: { search: READ }, approvals: { serach: {} } })],
        }),
      /names "serach", but the agent has no such tool.*It has: search/,
    ],
    [
      "an approval of a tool that is durable already",
      () =>
        createAgent({
          model: model(),
          tools: [durableTool(named("search"), READ)],
          middleware: [durableAgent({ approvals: { search: {} } })],
        }),
      /durableTool already/,
    ],
    [
      "a graph without checkpoints",
      () => createAgent({ model: model(), tools: [], middleware: [durableAgent()], checkpointer: false }),
      /checkpointer: false/,
    ],
  ])("%s, by durableGraph", (_what, make, message) => {
    expect(() => durableGraph(make() as never, { ledger: ledger() })).toThrow(
      expect.objectContaining({ ...refused, message: expect.stringMatching(message) }),
    );
  });

  it.each([
    ["an unknown option", { tool: {} }, /tool/],
    ["a list of tools", { tools: [named("a")] }, /object by tool name/],
    ["a declaration without a version", { tools: { a: { effect: "read" } } }, /version/],
    ["an effect that is none", { tools: { a: { version: "1.0.0", effect: "some" } } }, /effect/],
    ["a time that is no time", { tools: { a: { ...READ, timeoutMs: -1 } } }, /timeoutMs/],
    ["an unknown policy", { tools: { a: READ }, approvals: { a: { approver: "ann" } } }, /approver/],
    [
      "an approval of what is not recorded",
      { tools: { a: { version: "1.0.0", effect: "none" } }, approvals: { a: {} } },
      /effect "none"/,
    ],
    ["two approvals of one tool", { tools: { a: { ...READ, approval: {} } }, approvals: { a: {} } }, /twice/],
  ])("%s, by durableAgent", (_what, options, message) => {
    expect(() => durableAgent(options as never)).toThrow(
      expect.objectContaining({ ...refused, message: expect.stringMatching(message) }),
    );
  });

  it("the middleware used twice", () => {
    expect(() => createAgent({ model: model(), tools: [], middleware: [durableAgent(), durableAgent()] })).toThrow(
      /durableAgent is defined multiple times/,
    );
  });

  it("a LangChain below the peers", () => {
    for (const old of ["0.3.36", "1.4.9", "2.0.0"])
      expect(() => checkPeer(old)).toThrow(/npm install langchain@\^1\.5\.0/);
    for (const good of ["1.5.0", "1.5.14", "1.12.0"]) expect(() => checkPeer(good)).not.toThrow();
  });

  it("a run without a thread id", async () => {
    const agent = durableGraph(createAgent({ model: model(), tools: [], middleware: [durableAgent()] }), {
      ledger: ledger(),
    });
    await expect(agent.invoke(ask({}))).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining("thread_id"),
    });
  });

  it("an undeclared tool of a subagent, before its model is asked", async () => {
    const durable = durableAgent();
    const helper = {
      name: "helper",
      description: "h",
      systemPrompt: "You are helper.",
      tools: [named("search")],
      middleware: [durable],
    };
    const deep = createDeepAgent({ model: model(), middleware: [durable], subagents: [helper] });
    const call = { name: "task", args: { description: "go", subagent_type: "helper" } };
    const run = durableGraph(deep, { ledger: ledger() }).invoke(ask({ main: [[call]] }), thread("subagent"));
    await expect(run).rejects.toThrow(/not declared: "search"/);
    expect(harness.model.requests).toHaveLength(1);
  });
});

describe("a durable agent", () => {
  const middleware = () => [durableAgent({ tools: { look: READ } })] as const;
  const agent = () => createAgent({ model: model(), tools: [named("look")], middleware: middleware() });

  it("has the type and the shape of the agent that it was made from", async () => {
    const plain = createAgent({ model: model(), tools: [named("look")] });
    const before = agent();
    const durable = durableGraph(before, { ledger: ledger() });
    expectTypeOf(durable).toEqualTypeOf(before);
    type Keys<A extends { invoke(...args: never[]): Promise<unknown> }> = keyof Awaited<ReturnType<A["invoke"]>>;
    expectTypeOf<Keys<typeof durable>>().toEqualTypeOf<Keys<typeof plain>>();
    expect(await durable.drawMermaid()).toBe(await before.drawMermaid());
    expect(durable).not.toBe(before);
    expect(lastText(await before.graph.getGraphAsync().then(() => ({ messages: [] })))).toBeUndefined();
    const on = ledger();
    const once = durableGraph(before, { ledger: on });
    expect(durableGraph(once, { ledger: on })).toBe(once);
    expect(() => durableGraph(once, { ledger: ledger() })).toThrow(/another ledger/);
  });

  it("is durable by every way in: its own, its graph's, and that of a copy with a config", async () => {
    const durable = durableGraph(agent(), { ledger: ledger() });
    const plan = () => ask({ main: [[{ name: "look" }]] });
    await durable.invoke(plan(), thread("own"));
    await durable.graph.invoke(plan(), thread("graph"));
    await durable.withConfig({ tags: ["x"] }).invoke(plan(), thread("config"));
    const updates: string[] = [];
    for await (const chunk of await durable.stream(plan(), { ...thread("stream"), streamMode: "updates" }))
      updates.push(...Object.keys(chunk as object));
    expect(updates).toEqual(["model_request", "tools", "model_request"]);
    for await (const _ of durable.streamEvents(plan(), { ...thread("events"), version: "v2" }));
    for (const id of ["own", "graph", "config", "stream", "events"]) {
      const steps = await harness.db.sql("select name, state from longhaul.steps where thread_id = $1 order by seq", [
        id,
      ]);
      expect(steps, id).toEqual(["model", "look", "model"].map((name) => ({ name, state: "SUCCEEDED" })));
    }
  });

  it("keeps a checkpointer that it was given, and takes the ledger's where a server gives it one in memory", () => {
    const durable = durableGraph(agent(), { ledger: ledger() });
    durable.checkpointer = new MemorySaver();
    expect(durable.checkpointer).not.toBeInstanceOf(MemorySaver);
  });

  it("tells no caller more than LangChain does: a refused answer is an error of ours with its code", async () => {
    const durable = durableGraph(agent(), { ledger: ledger(), budget: { modelCalls: 0, onExceeded: "fail" } });
    await expect(durable.invoke(ask({}), thread("refused"))).rejects.toMatchObject({
      code: "BUDGET_EXCEEDED",
      status: 402,
    });
    expect(outcome(await durable.graph.getState(thread("refused")).then(({ values }) => values)).messages).toHaveLength(
      1,
    );
  });
});
