// TOK-02 (langgraphjs#1219, langgraph#4848, #5951): streaming runs report no usage, or report it more than once.
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableModel, openLedger, type Usage } from "../../src/index.js";
import { stepsOfThread } from "../../src/postgres/stepRows.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { type ScriptedChunk, streamServer } from "../support/streamServer.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({ out: Annotation<string> });
const thread = (thread_id: string, signal?: AbortSignal) => ({
  configurable: { thread_id },
  ...(signal === undefined ? {} : { signal }),
});
/** 400 characters in eight chunks. */
const TEXT: ScriptedChunk[] = Array.from({ length: 8 }, () => ({ text: "abcdefghi ".repeat(5) }));
const DONE: ScriptedChunk = { finish: true };
/** gpt-4.1-mini: 0.40 and 1.60 dollars a million tokens. */
const cost = (inputTokens: number, outputTokens: number) => BigInt(inputTokens * 400 + outputTokens * 1600);

/** A graph of one node that reads a model's stream. */
function reading(model: BaseChatModel, read?: (text: string) => "enough" | undefined) {
  const durable = durableModel(model);
  return durableGraph(
    new StateGraph(State)
      .addNode("ask", async () => {
        let out = "";
        for await (const chunk of await durable.stream("Who are you?")) {
          out += chunk.text;
          if (read?.(out) === "enough") break;
        }
        return { out };
      })
      .addEdge(START, "ask")
      .addEdge("ask", END),
    { ledger: db.openLedger() },
  );
}

async function usagesOf(threadId: string): Promise<(Usage | undefined)[]> {
  return (await stepsOfThread(await databaseOf(db.openLedger()), threadId)).map(({ record }) => record.usage);
}

async function usageAfter(threadId: string, model: BaseChatModel): Promise<Usage | undefined> {
  const { out } = await reading(model).invoke({}, thread(threadId));
  expect(out).toHaveLength(400);
  const usages = await usagesOf(threadId);
  expect(usages).toHaveLength(1);
  return usages[0];
}

describe("TOK-02: usage of a streamed call", () => {
  it("TOK-02: is estimated from the text when the provider reports none: counted, priced, and marked", async () => {
    const server = await streamServer([...TEXT, DONE]);
    expect(await usageAfter("missing", server.chat())).toMatchObject({
      model: "gpt-4.1-mini",
      inputTokens: 3,
      outputTokens: 100,
      costNanoUsd: cost(3, 100),
      estimated: true,
    });
  });

  it("TOK-02: is exact when it comes on the last chunk", async () => {
    const server = await streamServer([...TEXT, DONE, { usage: { prompt_tokens: 1000, completion_tokens: 90 } }]);
    expect(await usageAfter("last", server.chat())).toMatchObject({
      inputTokens: 1000,
      outputTokens: 90,
      costNanoUsd: cost(1000, 90),
      estimated: false,
    });
  });

  it("TOK-02: is not summed when the provider repeats its running total on two chunks", async () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 90 };
    const server = await streamServer([...TEXT, { usage: { ...usage, completion_tokens: 40 } }, { usage }]);
    const once = { inputTokens: 1000, outputTokens: 90, estimated: false };
    expect(await usageAfter("repeated-openai", server.chat())).toMatchObject(once);
    expect(await usageAfter("repeated-other", server.passingOn("groq"))).toMatchObject(once);
  });

  it("TOK-02: is summed when the chunks report differences, as LangChain's integrations do", async () => {
    const part = (prompt_tokens: number, completion_tokens: number) => ({
      usage: { prompt_tokens, completion_tokens },
    });
    const gemini = await streamServer([...TEXT, part(1000, 40), part(0, 30), part(0, 20)]);
    expect(await usageAfter("gemini", gemini.passingOn("google_genai"))).toMatchObject({
      inputTokens: 1000,
      outputTokens: 90,
    });
    // Anthropic's first report has the first tokens of the output, its last one all of them.
    const anthropic = await streamServer([part(1000, 4), ...TEXT, part(0, 90)]);
    expect(await usageAfter("anthropic", anthropic.passingOn("anthropic"))).toMatchObject({
      inputTokens: 1000,
      outputTokens: 90,
    });
  });

  it("TOK-02: is estimated for an answer that was not streamed, too", async () => {
    const server = await streamServer([...TEXT]);
    const model = durableModel(server.chat());
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", async () => ({ out: (await model.invoke("Who are you?")).text }))
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger: db.openLedger() },
    );
    await graph.invoke({}, thread("invoked"));
    expect(await usagesOf("invoked")).toMatchObject([{ inputTokens: 3, outputTokens: 100, estimated: true }]);
  });

  it("TOK-02: is priced by the model that was asked for when the answer names none, or one that nothing knows", async () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 90 };
    const unnamed = await streamServer([...TEXT, { finish: true, model: "" }, { usage, model: "" }]);
    const renamed = await streamServer([...TEXT, { finish: true, model: "house-blend-7" }, { usage }]);
    const priced = { costNanoUsd: cost(1000, 90) };
    expect(await usageAfter("unnamed", unnamed.chat())).toMatchObject({ ...priced, model: "gpt-4.1-mini" });
    expect(await usageAfter("renamed", renamed.chat())).toMatchObject({ ...priced, model: "house-blend-7" });
  });

  it("TOK-02: is that of the whole answer when the reader stops early, because the whole was ordered", async () => {
    const server = await streamServer([...TEXT, DONE, { usage: { prompt_tokens: 1000, completion_tokens: 90 } }]);
    await reading(server.chat(), () => "enough").invoke({}, thread("early"));
    expect(await usagesOf("early")).toMatchObject([
      { outputTokens: 90, costNanoUsd: cost(1000, 90), estimated: false },
    ]);
  });

  it("TOK-02: counts what an answer that broke off had cost, and the attempt after it on top, each once", async () => {
    const half = TEXT.slice(0, 4);
    const usage = { prompt_tokens: 1000, completion_tokens: 90 };
    const server = await streamServer([...half, { cut: true }], [...TEXT, DONE, { usage }]);
    const graph = reading(server.chat());
    await expect(graph.invoke({}, thread("broken"))).rejects.toThrow();
    expect(await usagesOf("broken")).toMatchObject([
      { inputTokens: 3, outputTokens: 50, costNanoUsd: cost(3, 50), estimated: true },
    ]);
    await graph.invoke(null, thread("broken"));
    await graph.invoke(null, thread("broken"));
    expect(await usagesOf("broken")).toMatchObject([
      { inputTokens: 1003, outputTokens: 140, costNanoUsd: cost(1003, 140), estimated: true },
    ]);
    const [row] = await db.sql(
      "select calls::int, cost_nano_usd from longhaul.costs_by_hour where thread_id = 'broken'",
    );
    expect(row).toEqual({ calls: 1, cost_nano_usd: String(cost(1003, 140)) });
  });

  it("TOK-02: counts what an aborted answer had cost, and does not take its half for the whole", async () => {
    const server = await streamServer([...TEXT.slice(0, 4), { hang: true }], [...TEXT, DONE]);
    const stop = new AbortController();
    const graph = reading(server.chat(), (text) => {
      if (text.length === 200) stop.abort();
      return undefined;
    });
    await expect(graph.invoke({}, thread("aborted", stop.signal))).rejects.toThrow();
    await expect.poll(() => usagesOf("aborted")).toMatchObject([{ outputTokens: 50, costNanoUsd: cost(3, 50) }]);
    expect((await graph.invoke(null, thread("aborted"))).out).toHaveLength(400);
    expect(await usagesOf("aborted")).toMatchObject([{ outputTokens: 150, costNanoUsd: cost(6, 150) }]);
  });

  it("TOK-02: is unpriced, not 0, for a model that nothing knows, and priced by the user's own table", async () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 90 };
    const server = await streamServer([...TEXT, DONE, { usage }]);
    const model = server.chat({ model: "demo-large-4-1" });
    expect(await usageAfter("nobody-knows", model)).toMatchObject({ model: "demo-large-4-1", costNanoUsd: undefined });
    const prices = { "demo-large-4-1": { inputUsdPerMillion: 2, outputUsdPerMillion: 10 } };
    const ledger = db.openLedger({ prices });
    const durable = durableModel(model);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", async () => ({ out: (await durable.invoke("Who are you?")).text }))
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger },
    );
    await graph.invoke({}, thread("own-price"));
    expect(await usagesOf("own-price")).toMatchObject([{ costNanoUsd: 2_900_000n }]);
    expect(() =>
      openLedger({ prices: { "demo-large-4-1": { ...prices["demo-large-4-1"], inputUsdPerMillion: -1 } } }),
    ).toThrow("demo-large-4-1");
  });
});
