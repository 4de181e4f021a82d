// TOK-05 (langchainjs#7862, langchain-google#927): structured output hides usage from the caller.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel } from "../../src/index.js";
import { stepsOfThread } from "../../src/postgres/stepRows.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";

let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
  const usage = { prompt_tokens: 700, completion_tokens: 20, total_tokens: 720 };
  const { server } = models;
  // Each mode's answers: one that fits the schema, and one that does not.
  server.prependFixture({ match: { userMessage: /capital/ }, response: { content: '{"city":"Paris"}', usage } });
  server.prependFixture({ match: { userMessage: /muddle/ }, response: { content: '{"city":7', usage } });
  const extract = (args: string) => [{ id: "call_1", name: "extract", arguments: args }];
  server.prependFixture({
    match: { userMessage: /call.*capital/ },
    response: { toolCalls: extract('{"city":"Paris"}'), usage },
  });
  server.prependFixture({
    match: { userMessage: /call.*muddle/ },
    response: { toolCalls: extract('{"town":7}'), usage },
  });
});

const State = Annotation.Root({ out: Annotation<string> });
const City = z.object({ city: z.string() });
const JSON_SCHEMA = {
  title: "extract",
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const MODES = [
  { mode: "a JSON schema", schema: JSON_SCHEMA, method: "jsonSchema", ask: "the" },
  { mode: "a zod schema", schema: City, method: "jsonSchema", ask: "the" },
  { mode: "function calling", schema: City, method: "functionCalling", ask: "call: the" },
] as const;

/** Runs `work` in a node, twice: what it cost, by its recorded calls. */
async function callsOf(threadId: string, work: () => Promise<unknown>): Promise<{ calls: object[]; requests: number }> {
  let dies = true;
  const graph = durableGraph(
    new StateGraph(State)
      .addNode("ask", async () => {
        const out = JSON.stringify(await work());
        if (dies) throw new Error("the node dies after its calls");
        return { out };
      })
      .addEdge(START, "ask")
      .addEdge("ask", END),
    { ledger: db.openLedger() },
  );
  const config = { configurable: { thread_id: threadId } };
  const before = models.requests();
  await expect(graph.invoke({}, config)).rejects.toThrow("the node dies");
  dies = false;
  expect((await graph.invoke(null, config)).out).toBe('{"city":"Paris"}');
  const steps = await stepsOfThread(await databaseOf(db.openLedger()), threadId);
  const calls = steps.map(({ record: { usage, attempt, state } }) => ({ ...usage, attempt, state }));
  return { calls, requests: models.requests() - before };
}

/** gpt-4.1-mini: 0.40 and 1.60 dollars a million tokens. */
const ONE_CALL = {
  inputTokens: 700,
  outputTokens: 20,
  costNanoUsd: 312_000n,
  estimated: false,
  attempt: 1,
  state: "SUCCEEDED",
};

describe("TOK-05: usage of structured output", () => {
  for (const { mode, schema, method, ask } of MODES) {
    const structured = () => durableModel(models.chat()).withStructuredOutput(schema as typeof City, { method });

    it(`TOK-05: of ${mode} is counted once per call, and not again on a replay`, async () => {
      const model = structured();
      const { calls, requests } = await callsOf(`once, ${mode}`, () => model.invoke(`${ask} capital`));
      expect(requests).toBe(1);
      expect(calls).toMatchObject([ONE_CALL]);
    });

    it(`TOK-05: of ${mode} is counted for an answer that does not parse, and for the repair after it`, async () => {
      const model = structured();
      const { calls, requests } = await callsOf(`repaired, ${mode}`, () =>
        model.invoke(`${ask} muddle`).catch(() => model.invoke(`${ask} capital`)),
      );
      expect(requests).toBe(2);
      expect(calls).toMatchObject([ONE_CALL, ONE_CALL]);
    });
  }

  it("TOK-05: is counted with the raw message asked for, which has it too", async () => {
    const model = durableModel(models.chat()).withStructuredOutput(City, { method: "jsonSchema", includeRaw: true });
    const seen: unknown[] = [];
    const { calls } = await callsOf("raw", async () => {
      const { raw, parsed } = await model.invoke("the capital");
      seen.push((raw as { usage_metadata?: { total_tokens?: number } }).usage_metadata?.total_tokens);
      return parsed;
    });
    expect(seen).toEqual([720, 720]);
    expect(calls).toMatchObject([ONE_CALL]);
  });
});
