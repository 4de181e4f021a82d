// The offline model, asked the way the graph asks: by the real ChatOpenAI over HTTP.
import { ToolMessage, type UsageMetadata } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import {
  notePrompt,
  notesText,
  type Prompt,
  planPrompt,
  researchPrompt,
  synthesisPrompt,
} from "../../graphs/research/prompts.js";
import { assembleReport } from "../../graphs/research/report.js";
import { type RequestLog, requestLog } from "../../graphs/research/world/requestLog.js";
import { startStandIn } from "../../graphs/research/world/standIn/server.js";

const QUESTION = "How do you build a dependable agent: tools, streaming and errors?";
const log: RequestLog = requestLog();
let model: ChatOpenAI;
let close: () => Promise<void>;

beforeAll(async () => {
  const server = await startStandIn({ log, latencyMs: 0 });
  close = server.close;
  model = new ChatOpenAI({ model: "gpt-4.1-mini", apiKey: "offline", configuration: { baseURL: server.url } });
});
afterAll(() => close());

const messages = ({ system, user }: Prompt): ["system" | "user", string][] => [
  ["system", system],
  ["user", user],
];

const page = {
  number: 7,
  url: "http://site/docs/tools",
  title: "Tools",
  text: [
    "# Tools",
    "A tool is an object that can be called by the model to perform a specific task.",
    "Unrelated words about the weather in another town fill this long sentence.",
    "```\nconst tool = tool({ description: 'A tool that must never be quoted from code.' });\n```",
    "You should validate the input of every tool with a schema before you run it.",
    "See the example below for more about tools and their schemas in this guide.",
  ].join("\n\n"),
};

test("quotes whole sentences of the page, each with the number of the page, and no code", async () => {
  const answer = await model.invoke(messages(notePrompt(QUESTION, "Tools", page)));
  const sentences = answer.text.split("\n");
  expect(sentences.length).toBeGreaterThan(1);
  for (const sentence of sentences) {
    expect(sentence).toMatch(/ \[7\]\.$/);
    expect(page.text).toContain(sentence.replace(/ \[7\]\.$/, ""));
  }
  expect(answer.text).toContain("validate the input of every tool");
  expect(answer.text).not.toContain("quoted from code");
  expect(answer.text).not.toContain("below");
});

test("says nothing about a page that holds no prose", async () => {
  const answer = await model.invoke(messages(notePrompt(QUESTION, "Tools", { ...page, text: "```\ncode()\n```" })));
  expect(answer.text).toBe("nothing");
});

test("reports usage and the model's name, in one answer as in a stream", async () => {
  const prompt = messages(notePrompt(QUESTION, "Tools", page));
  const whole = await model.invoke(prompt);
  expect(whole.response_metadata["model_name"]).toBe("gpt-4.1-mini");
  const billed = whole.usage_metadata as UsageMetadata | undefined;
  expect(billed?.input_tokens).toBeGreaterThan(150);
  expect(billed?.output_tokens).toBeGreaterThan(20);
  let text = "";
  let chunks = 0;
  let usage: unknown;
  for await (const chunk of await model.stream(prompt)) {
    text += chunk.text;
    chunks += chunk.text === "" ? 0 : 1;
    if (chunk.usage_metadata) usage = chunk.usage_metadata;
  }
  expect(chunks).toBeGreaterThan(1);
  expect(text).toBe(whole.text);
  expect(usage).toMatchObject({ input_tokens: billed?.input_tokens, output_tokens: billed?.output_tokens });
});

test("plans one topic for each thing that the question lists, and shares them out when fewer are wanted", async () => {
  const found = [{ url: "u", title: "Testing", snippet: "How to test." }];
  const plan = async (count: number) =>
    JSON.parse((await model.invoke(messages(planPrompt(QUESTION, count, found)))).text);
  expect(await plan(3)).toMatchObject({
    title: "How to build a dependable agent",
    topics: [{ title: "Tools" }, { title: "Streaming" }, { title: "Errors" }],
  });
  expect((await plan(2)).topics).toHaveLength(2);
  expect((await plan(4)).topics.at(-1)).toEqual({ title: "Testing", query: "Testing" });
});

test("calls search first and then every page of the reading list once", async () => {
  const search = tool(async () => "", { name: "search", description: "", schema: z.object({ query: z.string() }) });
  const readPage = tool(async () => "", { name: "read_page", description: "", schema: z.object({ url: z.string() }) });
  const pages = [1, 2].map((number) => ({ number, title: `Page ${number}`, url: `http://site/${number}` }));
  const prompt = messages(researchPrompt(QUESTION, { title: "Tools", query: "tools", pages }, true));
  const bound = model.bindTools([search, readPage]);
  const first = await bound.invoke(prompt);
  expect(first.tool_calls).toMatchObject([{ name: "search", args: { query: "Tools" } }]);
  const hits = new ToolMessage({
    tool_call_id: first.tool_calls?.[0]?.id ?? "",
    content: '[{"url":"http://site/2"}]',
    name: "search",
  });
  const second = await bound.invoke([...prompt, first, hits]);
  expect(second.tool_calls?.map((call) => call.args["url"])).toEqual(["http://site/2", "http://site/1"]);
});

test("writes a report whose every citation is a page that was given", async () => {
  const notes = [3, 4, 9].map((number) => ({
    topic: number === 9 ? "Errors" : "Tools",
    number,
    url: `http://site/${number}`,
    title: `Page ${number}`,
    text: `Agents need tools with clear names and clear schemas number ${number} [${number}].\nAlways handle the errors of tool number ${number} where they happen [${number}].`,
  }));
  const topics = ["Tools", "Errors"].map((title) => ({ title, query: title, pages: [] }));
  const answer = await model.invoke(
    messages(
      synthesisPrompt({ question: QUESTION, readers: "developers", title: "Agents", notes: notesText(topics, notes) }),
    ),
  );
  expect(answer.text).toMatch(/^# Agents\n/);
  expect(answer.text).toContain("\n## Tools\n");
  expect(answer.text).toContain("\n## Errors\n");
  const cited = [...answer.text.matchAll(/\[(\d+)\]/g)].map(([, number]) => Number(number));
  expect([...new Set(cited)].sort()).toEqual([3, 4, 9]);
});

test("says plainly in the report that no language model wrote it", () => {
  const access = {
    name: "gpt-4.1-mini",
    apiKey: "offline",
    baseUrl: undefined,
    standIn: true,
    cheapName: "gpt-4.1-nano",
  };
  const read = [{ topic: "T", number: 1, url: "/docs/one", title: "One", text: "Fact [1]." }];
  const leads = [
    { title: "One", url: "/docs/one" },
    { title: "Two", url: "http://site/2" },
  ];
  const report = assembleReport({
    text: "# Title\n\nFact [1]. Made up [2].",
    title: "Title",
    read,
    leads,
    model: access,
    unread: [{ title: "T", query: "", pages: [{ number: 3, url: "/docs/three", title: "Three" }] }],
  });
  expect(report).toContain("offline stand-in");
  expect(report).toContain("Fact [1]. Made up.");
  expect(report).toContain("[1] [One](https://ai-sdk.dev/docs/one)");
  expect(report).toContain("read from the copy in the npm package ai 6.0.326");
  expect(report).toContain("## Found, not read\n\n- [Two](http://site/2)");
  expect(report).not.toContain("- [One]");
});

test("answers a stranger's question by saying what it is", async () => {
  const answer = await model.invoke("What is the capital of France?");
  expect(answer.text).toContain("offline stand-in");
});

test("counts each request by what it asks, whoever asks", async () => {
  const before = log.count("model");
  await model.invoke("Same question");
  await model.invoke("Same question");
  await model.invoke("Other question");
  const identities = log.requests
    .filter((request) => request.kind === "model")
    .slice(before)
    .map((request) => request.identity);
  expect(identities).toHaveLength(3);
  expect(new Set(identities).size).toBe(2);
});
