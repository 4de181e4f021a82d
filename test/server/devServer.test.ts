// The research graph through `langgraphjs dev`, as its own process, over HTTP.
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { Client } from "@langchain/langgraph-sdk";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
const started: ChildProcess[] = [];

beforeAll(async () => {
  db = await testDatabase();
});
afterEach(async () => {
  for (const child of started.splice(0)) await stop(child);
});

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** Starts the dev server in a process group of its own, so that all of it can be ended. */
async function startServer(): Promise<{ client: Client; child: ChildProcess; log: () => string }> {
  const port = await freePort();
  const child = spawn(
    process.execPath,
    ["node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs", "dev", "--no-browser", "--port", String(port)],
    {
      env: { ...process.env, LONGHAUL_DATABASE_URL: db.url, LANGSMITH_TRACING: "false" },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(async () => (await fetch(`${url}/ok`).catch(() => undefined))?.ok, {
      timeout: 40_000,
      interval: 200,
      message: output,
    })
    .toBe(true);
  return { client: new Client({ apiUrl: url, apiKey: null }), child, log: () => output };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  process.kill(-child.pid, "SIGKILL");
  await ended;
}

describe("the LangGraph dev server", () => {
  it("runs a thread of the research graph, and a new server still has its state after a kill", async () => {
    const first = await startServer();
    const { thread_id } = await first.client.threads.create();
    const result = await first.client.runs.wait(thread_id, "research", {
      input: { question: "How do I stream text?", pages: 2 },
    });
    expect(result, first.log()).toMatchObject({ question: "How do I stream text?" });
    const [row] = await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [
      thread_id,
    ]);
    expect(row?.state).toBe("done");
    const writes = await db.sql("select state from longhaul.steps where thread_id = $1 and effect = 'write'", [
      thread_id,
    ]);
    expect(writes).toEqual([{ state: "SUCCEEDED" }]);
    await stop(first.child);

    const second = await startServer();
    await second.client.threads.create({ threadId: thread_id, ifExists: "do_nothing", graphId: "research" });
    await expect
      .poll(async () => (await second.client.threads.getState(thread_id)).values, { timeout: 20_000 })
      .toMatchObject({ question: "How do I stream text?" });
  }, 120_000);
});
