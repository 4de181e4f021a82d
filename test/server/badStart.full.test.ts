// Servers that must not start: what they say, and that nobody is served by them.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, expect, it } from "vitest";
import { type DevProject, type Launched, launchServer, project } from "../support/devServer.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const from = (path: string) => JSON.stringify(join(root, path));

const GRAPH = `
import { openLedger } from ${from("src/index.ts")};
import { payment } from ${from("test/server/paymentGraph.ts")};
export const ledger = openLedger();
export const pay = payment(ledger).graph;
`;
const APP = `
import { inboxApp } from ${from("src/server/index.ts")};
import { ledger } from "./graph.ts";
export const app = inboxApp({ ledger });
`;

const servers: Launched[] = [];
let good: DevProject;
let misnamed: DevProject;
beforeAll(async () => {
  const files = { "graph.ts": GRAPH, "app.ts": APP };
  const http = { app: "./app.ts:app" };
  good = await project("", { files, settings: { graphs: { pay: "./graph.ts:pay" }, http } });
  misnamed = await project("", { files, settings: { graphs: { pay: "./graph.ts:payment" } } });
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
});

async function launch({ folder }: DevProject, env: NodeJS.ProcessEnv): Promise<Launched> {
  const server = await launchServer(folder, { env });
  servers.push(server);
  return server;
}

async function staysDown(server: Launched): Promise<void> {
  await expect(fetch(`${server.url}/ok`)).rejects.toThrow();
  expect(server.log()).not.toContain("Server running");
}

const says = (server: Launched, text: string) => expect.poll(() => server.log(), { timeout: 60_000 }).toContain(text);

it("deployed without a database: says which variable to set, and starts no server of its own", async () => {
  const server = await launch(good, { LANGSMITH_LANGGRAPH_API_VARIANT: "cloud" });
  await says(server, "Set LONGHAUL_DATABASE_URL to a PostgreSQL address");
  await staysDown(server);
  expect(server.log()).not.toMatch(/embedded/i);
});

it("with an address that is none: names the variable, and repeats no password", async () => {
  const server = await launch(good, { LONGHAUL_DATABASE_URL: "mysql://root:hunter22@127.0.0.1/app" });
  await says(server, "LONGHAUL_DATABASE_URL");
  await staysDown(server);
  expect(server.log()).not.toContain("hunter22");
});

it("with a graph that its file does not export: names the graph", async () => {
  const server = await launch(misnamed, { LONGHAUL_DATABASE_URL: "postgres://127.0.0.1:1/nowhere" });
  await says(server, "graph is nullush");
  expect(server.log()).toContain("Registering graph with id 'pay'");
  await staysDown(server);
});
