// A LangGraph server with authentication of its own and the inbox mounted: who decides is whom the server knows, whatever a
// client says of itself, and what is due still goes on.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf } from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevProject, type DevServer, project } from "../support/devServer.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const from = (path: string) => JSON.stringify(join(root, path));

const GRAPH = `
import { openLedger } from ${from("src/index.ts")};
import { payment } from ${from("test/server/paymentGraph.ts")};
export const ledger = openLedger();
const resumeAs = ({ langgraph_auth_user: user }) => user && { by: user.identity, roles: user.roles };
export const pay = payment(ledger, { approvers: ["role:boss"] }, { resumeAs }).graph;
`;
// Threads belong to who made them; the waker may go on with all of them.
const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
const users = { "ann-token": ["ann", ["boss"]], "bob-token": ["bob", []], "waker-token": ["waker", []] };
export const auth = new Auth()
  .authenticate(async (request) => {
    const user = users[request.headers.get("authorization")?.replace("Bearer ", "")];
    if (user === undefined) throw new HTTPException(401, { message: "Who are you?" });
    return { identity: user[0], roles: user[1], permissions: [], is_authenticated: true };
  })
  .on("*", ({ value, user }) => {
    if (user.identity === "waker") return;
    if ("metadata" in value) value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  })
  .on("assistants", () => {});
`;
const APP = `
import { Client } from "@langchain/langgraph-sdk";
import { inboxApp } from ${from("src/server/index.ts")};
import { langgraphServerWaker, sweepHere } from ${from("src/worker/index.ts")};
import { ledger } from "./graph.ts";
const client = new Client({ apiKey: null, defaultHeaders: { authorization: "Bearer waker-token" } });
sweepHere(ledger, { waker: langgraphServerWaker({ client }), onError: (error) => console.error("sweep:", error) });
export const app = inboxApp({ ledger });
`;

let db: TestDatabase;
let ledger: OpenedLedger;
let served: DevProject;
let server: DevServer;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  served = await project(db.url, {
    files: { "graph.ts": GRAPH, "auth.ts": AUTH, "app.ts": APP },
    settings: {
      graphs: { pay: "./graph.ts:pay" },
      auth: { path: "./auth.ts:auth", disable_studio_auth: true },
      http: { app: "./app.ts:app" },
    },
  });
  server = await served.start();
}, 120_000);

const as = (token: string | undefined, headers: Record<string, string> = {}) =>
  new Client({
    apiUrl: server.url,
    apiKey: null,
    callerOptions: { maxRetries: 0 },
    defaultHeaders: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });

const requestOf = async (thread: string) => {
  const [request] = await approvalsOf(ledger, { threadId: thread });
  if (request === undefined) throw new Error(`No request of ${thread}.\n${server.log()}`);
  return request;
};

async function ask(client: Client): Promise<string> {
  const { thread_id } = await client.threads.create();
  await client.runs.wait(thread_id, "pay", { input: { amount: 5, log: [] } });
  expect((await requestOf(thread_id)).status).toBe("pending");
  return thread_id;
}

const paid = (thread: string) => db.sql("select state from longhaul.steps where thread_id = $1", [thread]);
const PAID = [{ state: "SUCCEEDED" }];

describe("a LangGraph server with authentication", () => {
  it("lets nobody in who is not known, to the graphs or to the inbox, and no page that says it is Studio", async () => {
    const studio = { "x-auth-scheme": "langsmith" };
    for (const client of [as(undefined), as("wrong"), as(undefined, studio)])
      await expect(client.threads.create()).rejects.toThrow("401");
    for (const headers of [{}, { authorization: "Bearer wrong" }, studio]) {
      for (const path of ["/inbox", "/api/approvals", "/api/session"]) {
        const answer = await fetch(server.url + path, { headers, redirect: "manual" });
        expect(answer.status, path).toBe(401);
      }
    }
  });

  it("decides by a resume value as the user it knows, and never as who the client says to be", async () => {
    const bob = as("bob-token");
    const thread = await ask(bob);
    const { id } = await requestOf(thread);
    const boss = { identity: "ann", roles: ["boss"], permissions: ["boss"], is_authenticated: true };
    const forged = {
      langgraph_auth_user: boss,
      langgraph_auth_user_id: "ann",
      langgraph_auth_permissions: ["boss"],
      user_id: "ann",
    };
    const resume = { command: { resume: { [id]: "approve" } } };
    const payloads = [
      resume,
      { ...resume, config: { configurable: forged } },
      { ...resume, context: forged },
      { ...resume, metadata: forged },
    ];
    for (const payload of payloads) {
      const answer = await bob.runs.wait(thread, "pay", payload).catch((error: Error) => ({ error: error.message }));
      expect(JSON.stringify(answer)).toMatch(/may decide|not decided|refused/i);
    }
    expect((await requestOf(thread)).status).toBe("pending");
    expect(await paid(thread)).toEqual([]);
    const decided = await ask(as("ann-token"));
    await as("ann-token").runs.wait(decided, "pay", { command: { resume: "approve" } });
    expect(await requestOf(decided)).toMatchObject({ status: "approved", decidedBy: "ann" });
    expect(await paid(decided)).toEqual(PAID);
  });

  it("takes the same user in the inbox, and the thread of somebody else goes on by itself", async () => {
    const thread = await ask(as("bob-token"));
    const { id } = await requestOf(thread);
    const decide = (token: string, headers: Record<string, string> = {}, more: object = {}) =>
      fetch(`${server.url}/api/approvals/${id}/decide`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
        body: JSON.stringify({ status: "approved", ...more }),
      });
    expect((await decide("bob-token", {}, { by: "ann" })).status).toBe(400);
    expect((await decide("bob-token")).status).toBe(403);
    expect((await decide("bob-token", { "x-user": "ann", "x-langgraph-auth-user": "ann" })).status).toBe(403);
    expect((await requestOf(thread)).status).toBe("pending");
    const allowed = await decide("ann-token");
    expect(await allowed.json()).toMatchObject({ result: "applied", winner: { decidedBy: "ann" } });
    await expect.poll(() => paid(thread), { timeout: 60_000, message: server.log() }).toEqual(PAID);
    // Another user's thread is not the boss's to see, only its request.
    await expect(as("ann-token").threads.getState(thread)).rejects.toThrow("404");
    const state = await as("bob-token").threads.getState<{ log: string[] }>(thread);
    expect(state.values.log).toEqual(["ann", "paid 5"]);
    expect(server.log()).not.toContain("sweep:");
  }, 120_000);

  // The last one: it ends the server that the others use.
  it("has a decided thread go on after a kill, and its owner still reads it", async () => {
    const thread = await ask(as("bob-token"));
    await server.kill();
    server = await served.start();
    const { id } = await requestOf(thread);
    const answer = await fetch(`${server.url}/api/approvals/${id}/decide`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer ann-token" },
      body: JSON.stringify({ status: "approved" }),
    });
    expect(answer.status).toBe(200);
    await expect.poll(() => paid(thread), { timeout: 60_000, message: server.log() }).toEqual(PAID);
  }, 120_000);
});
