// The research graph loaded alone, as LangGraph Studio does: no parent, no configuration.
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { afterAll, beforeAll, expect, test } from "vitest";
import { researchGraph } from "../../graphs/research/graph.js";
import { keepToReadingList } from "../../graphs/research/researcher.js";
import { testDatabase } from "../support/database.js";

const database = await testDatabase();
const graph = researchGraph(database.openLedger());
const config = (thread: string) => ({ configurable: { thread_id: thread } });
const input = (values: { question?: string; pages?: number; urls?: string[] }) => ({
  question: "",
  pages: 0,
  urls: [],
  ...values,
});
let reports: string;

beforeAll(async () => {
  reports = await mkdtemp(join(tmpdir(), "longhaul-alone-"));
  process.env["RESEARCH_REPORTS_DIR"] = reports;
});
afterAll(() => rm(reports, { recursive: true }));

test("starts a world of its own when it needs one, and answers another question than the demo's", async () => {
  const question = "How does streaming work: protocols and errors?";
  const result = await graph.invoke(input({ question, pages: 4 }), config("alone"));
  expect(result.topics.map((topic) => topic.title)).toEqual(["Protocols", "Errors"]);
  expect(result.notes).toHaveLength(4);
  expect(result.reportPath.startsWith(reports)).toBe(true);
  expect(await readFile(result.reportPath, "utf8")).toBe(result.report);
});

test.each([
  [input({ pages: -1 }), /"path": \[\s*"pages"/],
  [input({ pages: 2.5 }), /"path": \[\s*"pages"/],
  [input({ pages: 100_000 }), /"path": \[\s*"pages"/],
  [input({ pages: 1, urls: ["ftp://example.com/"] }), /"path": \[\s*"urls"/],
])("refuses %j before anything is asked of anybody", async (bad, message) => {
  const thread = `bad ${JSON.stringify(bad)}`;
  await expect(graph.invoke(bad, config(thread))).rejects.toThrow(message);
  expect(await database.sql("select 1 from longhaul.steps where thread_id = $1", [thread])).toEqual([]);
});

test("shows its researchers' nodes in its picture", async () => {
  const picture = (await graph.getGraphAsync({ xray: true })).drawMermaid();
  for (const node of ["plan", "think", "tools", "note", "synthesis", "publish"]) expect(picture).toContain(node);
});

test("opens nothing when it is imported", () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const script = `const { graph } = await import("./graphs/research/graph.ts"); console.log(graph.getName(), process.getActiveResourcesInfo().filter((r) => /TCP|Pipe.*Server/.test(r)).length);`;
  const env = { ...process.env, LONGHAUL_DATABASE_URL: "postgres://127.0.0.1:1/nowhere" };
  const args = ["--import", tsx, "--input-type=module", "--eval", script];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "research 0\n", stderr: "" });
});

test("drops a model's wish for a page that it has or that is not its own, and keeps the rest of the answer", () => {
  const page = (number: number) => ({ number, url: `/docs/${number}`, title: `Page ${number}` });
  const topic = { title: "T", query: "t", pages: [page(1), page(2)] };
  const wish = (id: string, url: string) => ({ id, name: "read_page", args: { url }, type: "tool_call" as const });
  const messages = [new HumanMessage("go"), new AIMessage({ content: "", tool_calls: [wish("a", "/docs/1")] })];
  const answer = new AIMessage({
    content: "reading",
    tool_calls: [wish("b", "/docs/1"), wish("c", "/docs/2"), wish("d", "/docs/2"), wish("e", "/docs/3")],
  });
  const kept = keepToReadingList(answer, { messages, topic });
  expect(kept.tool_calls?.map((call) => call.id)).toEqual(["c"]);
  expect(kept.content).toBe("reading");
});
