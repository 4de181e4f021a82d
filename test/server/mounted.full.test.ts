// The app as `http.app` of a LangGraph dev server: a run pauses, the server is killed, and the request is in the inbox of the
// next one. Two windows of a real browser approve it at once, and what was asked for is done once.
import { existsSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { approvalsOf } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevServer, startServer } from "../support/devServer.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

const GRAPH = `
import { openLedger } from ${JSON.stringify(join(root, "src/index.ts"))};
import { payment } from ${JSON.stringify(join(root, "test/server/paymentGraph.ts"))};
export const ledger = openLedger();
export const pay = payment(ledger).graph;
`;
const APP = `
import { Client } from "@langchain/langgraph-sdk";
import { inboxApp } from ${JSON.stringify(join(root, "src/server/index.ts"))};
import { langgraphServerWaker, sweepHere } from ${JSON.stringify(join(root, "src/worker/index.ts"))};
import { ledger } from "./graph.ts";
const client = new Client();
sweepHere(ledger, { waker: langgraphServerWaker({ client }), onError: (error) => console.error("sweep:", error) });
export const app = inboxApp({ ledger, user: { id: "ann" } });
`;

let db: TestDatabase;
let folder: string;
const servers: DevServer[] = [];
beforeAll(async () => {
  db = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "longhaul-app-"));
  const settings = { node_version: "20", graphs: { pay: "./graph.ts:pay" }, http: { app: "./app.ts:app" } };
  await Promise.all([
    writeFile(join(folder, "graph.ts"), GRAPH),
    writeFile(join(folder, "app.ts"), APP),
    writeFile(join(folder, "langgraph.json"), JSON.stringify(settings)),
    writeFile(join(folder, "package.json"), JSON.stringify({ name: "app", type: "module", private: true })),
    symlink(join(root, "node_modules"), join(folder, "node_modules")),
  ]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await rm(folder, { recursive: true, force: true });
});

async function start(): Promise<DevServer> {
  const server = await startServer(folder, db.url);
  servers.push(server);
  return server;
}

it("keeps a request over a kill of the server, lets one of two clicks win, and pays once", {
  timeout: 180_000,
}, async () => {
  if (CHROMIUM === undefined) throw new Error("Chromium is missing: apt-get install chromium");
  const first = await start();
  const { thread_id } = await first.client.threads.create();
  await first.client.runs.create(thread_id, "pay", { input: { amount: 5 } });
  const ledger = db.openLedger();
  const pending = () => approvalsOf(ledger, { status: "pending", threadId: thread_id });
  await expect.poll(async () => (await pending()).length, { timeout: 30_000 }).toBe(1);
  await first.kill();

  const second = await start();
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  try {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const [one, two] = [await context.newPage(), await context.newPage()];
    // The address with the token is printed once somebody asks for the door.
    await one.goto(`${second.url}/inbox`);
    const address = () => /http:\/\/\S+\/inbox\/login\?token=[\w-]+/.exec(second.log())?.[0];
    await expect.poll(address).toBeDefined();
    await one.goto(address() ?? "");
    await one.getByRole("button", { name: "Open the inbox" }).click();
    await one.waitForURL("**/inbox");
    const path = `${second.url}/inbox/approvals/${(await pending())[0]?.id}`;
    await Promise.all([one.goto(path), two.goto(path)]);
    await Promise.all([one, two].map((page) => page.getByRole("button", { name: "Approve" }).click()));
    const told = await Promise.all([one, two].map((page) => page.getByRole("status").textContent()));
    expect(told.map((text) => text?.startsWith("Approved.")).sort()).toEqual([false, true]);
    const states = () => db.sql("select name, state, attempt from longhaul.steps where thread_id = $1", [thread_id]);
    await expect
      .poll(states, { timeout: 60_000, message: second.log() })
      .toEqual([{ name: "pay", state: "SUCCEEDED", attempt: 1 }]);
    await one.goto(`${second.url}/runs/${thread_id}`);
    await expect.poll(() => one.locator("h1").textContent()).toContain(thread_id);
  } finally {
    await browser.close();
  }
});
