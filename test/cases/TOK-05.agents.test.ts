// TOK-05 (langchainjs#7862, langchain-google#927): structured output hides usage; here of whole agents.
import { createDeepAgent } from "deepagents";
import { createAgent, providerStrategy, toolStrategy } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph } from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { chat } from "../agents/agents.js";
import { agentHarness, ask, modelStepsOf, thread } from "../agents/harness.js";
import { SAY } from "../agents/plannedModel.js";

const harness = agentHarness();

const City = z.object({ city: z.string() });
const JSON_SCHEMA = {
  title: "extract",
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
} as const;
const makers = { createAgent, deepagents: createDeepAgent as unknown as typeof createAgent };
const PARIS = { name: "extract*", args: { city: "Paris" } };
const WRONG = { name: "extract*", args: { city: 7 } };
const USAGE = { inputTokens: 1000, outputTokens: 500, costNanoUsd: 1_200_000n, estimated: false };

describe.each(Object.keys(makers) as (keyof typeof makers)[])("TOK-05: structured output of %s", (kind) => {
  const run = async (id: string, responseFormat: unknown, turns: readonly (readonly object[])[]) => {
    const made = { model: chat(harness.world("")), tools: [], middleware: [durableAgent()], responseFormat };
    const agent = durableGraph(makers[kind](made as never), { ledger: harness.db.openLedger() });
    const result = (await agent.invoke(ask({ main: turns as never }), thread(id))) as { structuredResponse?: unknown };
    expect(result.structuredResponse).toEqual({ city: "Paris" });
    return (await modelStepsOf(harness.db, id)).map(({ usage }) => usage);
  };

  it.each([
    ["a zod schema", () => toolStrategy(City), [[PARIS]], 1],
    ["a zod schema, repaired", () => toolStrategy(City), [[WRONG], [PARIS]], 2],
    ["a JSON schema, repaired", () => toolStrategy(JSON_SCHEMA as never), [[WRONG], [PARIS]], 2],
    ["the provider's own mode", () => providerStrategy(City), [[{ name: SAY, args: { text: '{"city":"Paris"}' } }]], 1],
  ] as const)("TOK-05: by %s is counted once for each call", async (mode, format, turns, calls) => {
    const usages = await run(`${kind} ${mode}`, format(), turns);
    expect(usages).toMatchObject(Array.from({ length: calls }, () => USAGE));
    expect(harness.model.requests).toHaveLength(calls);
  });
});
