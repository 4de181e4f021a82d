// `langgraphjs dev` as a process of its own, on a small project in a temporary folder that a test may change.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll } from "vitest";
import { cleanEnvironment } from "./script.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

export interface DevServer {
  readonly client: Client;
  readonly url: string;
  log(): string;
  /** SIGKILL to all of its processes. */
  kill(): Promise<void>;
}

export interface DevProject {
  readonly folder: string;
  start(): Promise<DevServer>;
  /** Saves the graph's file again, as an editor does. */
  touch(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) signalAll(child);
});

/** A project whose graphs are the worker graphs of `shapes`, on one ledger. */
export async function devProject(databaseUrl: string, worldUrl: string): Promise<DevProject> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-dev-"));
  const graphFile = join(folder, "graph.ts");
  const source = [
    `import { openLedger } from ${JSON.stringify(join(root, "src/index.ts"))};`,
    `import { workerGraph } from ${JSON.stringify(join(root, "test/support/workerGraph.ts"))};`,
    "const ledger = openLedger();",
    `const graph = (shape) => workerGraph(ledger, ${JSON.stringify(worldUrl)}, { shape });`,
    'export const guarded = graph("guarded");',
    'export const asking = graph("asking");',
  ];
  const graphs = { guarded: "./graph.ts:guarded", asking: "./graph.ts:asking" };
  await Promise.all([
    writeFile(graphFile, source.join("\n")),
    writeFile(join(folder, "langgraph.json"), JSON.stringify({ node_version: "20", graphs })),
    writeFile(join(folder, "package.json"), JSON.stringify({ name: "dev-project", type: "module", private: true })),
    symlink(join(root, "node_modules"), join(folder, "node_modules")),
  ]);
  const servers: DevServer[] = [];
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.kill()));
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    start: async () => {
      const server = await startServer(folder, databaseUrl);
      servers.push(server);
      return server;
    },
    touch: async () => writeFile(graphFile, `${await readFile(graphFile, "utf8")}\n`),
  };
}

/** `langgraphjs dev` in a folder that has a langgraph.json. */
export async function startServer(folder: string, databaseUrl: string): Promise<DevServer> {
  const port = await freePort();
  const cli = join(root, "node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs");
  const child = spawn(process.execPath, [cli, "dev", "--no-browser", "--port", String(port)], {
    cwd: folder,
    env: { ...cleanEnvironment(), LONGHAUL_DATABASE_URL: databaseUrl, LANGSMITH_TRACING: "false" },
    // A process group of its own, so that all of it can be ended.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  const ended = new Promise<void>((resolve) =>
    child.once("close", () => {
      running.delete(child);
      resolve();
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  await until(
    async () => (await fetch(`${url}/ok`).catch(() => undefined))?.ok === true,
    () => output,
  );
  return {
    // A request that fails is the test's to see, not the client's to send again.
    client: new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0 } }),
    url,
    log: () => output,
    kill: async () => {
      signalAll(child);
      await ended;
    },
  };
}

const START_MS = 90_000;

/** Also outside a test, where `expect.poll` may not be used. */
async function until(done: () => Promise<boolean>, log: () => string): Promise<void> {
  for (const giveUpAt = Date.now() + START_MS; !(await done()); ) {
    if (Date.now() > giveUpAt) throw new Error(`The dev server did not start:\n${log()}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function signalAll(child: ChildProcess): void {
  if (child.pid === undefined || !running.has(child)) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

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
