// The graphs of langgraph.json through `langgraphjs dev`, as its own process, over HTTP.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevServer, startServer } from "../support/devServer.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

let db: TestDatabase;
const started: DevServer[] = [];

beforeAll(async () => {
  db = await testDatabase();
});
afterEach(async () => {
  for (const server of started.splice(0)) await server.kill();
});

async function start(): Promise<DevServer> {
  const server = await startServer(root, db.url);
  started.push(server);
  return server;
}

async function graphsServed(): Promise<string[]> {
  return Object.keys((JSON.parse(await readFile(`${root}/langgraph.json`, "utf8")) as { graphs: object }).graphs);
}

interface Field {
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
}
const fieldsOf = (schema: unknown) =>
  Object.entries((schema as { properties?: Record<string, Field> }).properties ?? {});

describe("the LangGraph dev server", () => {
  it("runs a thread of the research graph, and a new server still has its state after a kill", async () => {
    const first = await start();
    const { thread_id } = await first.client.threads.create();
    const result = await first.client.runs.wait(thread_id, "research", {
      input: { question: "How do I stream text?", pages: 2 },
      context: { readers: "students" },
    });
    expect(result, first.log()).toMatchObject({ question: "How do I stream text?", readers: "students", urls: [] });
    const [row] = await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [
      thread_id,
    ]);
    expect(row?.state).toBe("done");
    const writes = await db.sql("select state from longhaul.steps where thread_id = $1 and effect = 'write'", [
      thread_id,
    ]);
    expect(writes).toEqual([{ state: "SUCCEEDED" }]);
    await first.kill();

    const second = await start();
    await second.client.threads.create({ threadId: thread_id, ifExists: "do_nothing", graphId: "research" });
    await expect
      .poll(async () => (await second.client.threads.getState(thread_id)).values, { timeout: 20_000 })
      .toMatchObject({ question: "How do I stream text?" });
  }, 120_000);

  it("tells Studio what to draw: every graph's forms with titles and help, and its nodes", async () => {
    const { client } = await start();
    for (const graph of await graphsServed()) {
      const { nodes } = await client.assistants.getGraph(graph);
      for (const { id } of nodes) expect(String(id)).toMatch(/^(__start__|__end__|[a-z][A-Za-z ]*)$/);
      const schemas = await client.assistants.getSchemas(graph);
      const input = fieldsOf(schemas.input_schema);
      expect(input.length, `fields of ${graph}'s input`).toBeGreaterThan(0);
      for (const [name, field] of [...input, ...fieldsOf(schemas.context_schema ?? {})]) {
        expect(field, `${graph}: ${name}`).toMatchObject({
          title: expect.any(String),
          description: expect.any(String),
        });
      }
      const state = fieldsOf(schemas.state_schema).map(([name]) => name);
      expect(state, `${graph}'s state, for editing`).toEqual(expect.arrayContaining(input.map(([name]) => name)));
    }
    const research = await client.assistants.getSchemas("research");
    const defaults = Object.fromEntries(
      [...fieldsOf(research.input_schema), ...fieldsOf(research.context_schema)].map(([name, field]) => [
        name,
        field.default,
      ]),
    );
    expect(defaults).toEqual({
      question: expect.stringContaining("AI SDK"),
      pages: 40,
      urls: [],
      readers: "developers",
    });
  }, 120_000);

  it("refuses input and context that the forms would not take, and names the field", async () => {
    const { client } = await start();
    const refused = async (payload: object) => {
      const { thread_id } = await client.threads.create();
      const failed = await client.runs.wait(thread_id, "research", payload).catch((error: Error) => error.message);
      expect(await db.sql("select 1 from longhaul.steps where thread_id = $1", [thread_id])).toEqual([]);
      return JSON.stringify(failed);
    };
    expect(await refused({ input: { pages: -1 } })).toContain("pages");
    expect(await refused({ input: { pages: 1 }, context: { readers: "" } })).toContain("readers");
  }, 120_000);
});
