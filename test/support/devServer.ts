// `langgraphjs dev` as a process of its own, on a small project in a temporary folder that a test may change.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll } from "vitest";
import { freePort } from "./freePort.js";
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
const folders: string[] = [];
// Here, when the file that imports this is read: vitest does not hear of an afterAll that is registered within a hook.
afterAll(async () => {
  for (const child of running) signalAll(child);
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })));
});

export interface ProjectOptions {
  /**
   * The server's checkpointer is kept, as when it is deployed: graphs are given one that stores plain JSON, and the dev
   * server's own, which lives in memory, is left aside. @default "ours"
   */
  readonly checkpointer?: "ours" | "the server's";
}

/** A project whose graphs are the worker graphs of `shapes`, and one with a limit, on one ledger. */
export async function devProject(
  databaseUrl: string,
  worldUrl: string,
  options: ProjectOptions = {},
): Promise<DevProject> {
  const given = options.checkpointer === "the server's";
  const source = [
    `import { openLedger } from ${JSON.stringify(join(root, "src/index.ts"))};`,
    `import { workerGraph } from ${JSON.stringify(join(root, "test/support/workerGraph.ts"))};`,
    `import { payment } from ${JSON.stringify(join(root, "test/server/paymentGraph.ts"))};`,
    `import { serverSaver } from ${JSON.stringify(join(root, "test/support/serverSaver.ts"))};`,
    "const ledger = openLedger();",
    given ? `const saver = await serverSaver(${JSON.stringify(databaseUrl)});` : "",
    `const serve = (graph) => ${given ? "Object.assign(graph, { checkpointer: saver })" : "graph"};`,
    `const graph = (shape, budget) => serve(workerGraph(ledger, ${JSON.stringify(worldUrl)}, { shape, budget }));`,
    'export const guarded = graph("guarded");',
    'export const asking = graph("asking");',
    'export const limited = graph("guarded", { iterations: 1 });',
    "export const approving = serve(payment(ledger).graph);",
  ];
  const graphs = ["guarded", "asking", "limited", "approving"];
  return project(databaseUrl, {
    files: { "graph.ts": source.join("\n") },
    settings: { graphs: Object.fromEntries(graphs.map((name) => [name, `./graph.ts:${name}`])) },
  });
}

/** A project of these files, with this package's modules. */
export async function project(
  databaseUrl: string,
  { files, settings }: { files: Readonly<Record<string, string>>; settings: object },
): Promise<DevProject> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-dev-"));
  const own = {
    "langgraph.json": JSON.stringify({ node_version: "20", ...settings }),
    "package.json": JSON.stringify({ name: "dev-project", type: "module", private: true }),
  };
  const all = Object.entries({ ...own, ...files });
  await Promise.all([
    ...all.map(([name, text]) => writeFile(join(folder, name), text)),
    symlink(join(root, "node_modules"), join(folder, "node_modules")),
  ]);
  folders.push(folder);
  return {
    folder,
    start: () => startServer(folder, databaseUrl),
    touch: async () => {
      const [first = ""] = Object.keys(files);
      await writeFile(join(folder, first), `${await readFile(join(folder, first), "utf8")}\n`);
    },
  };
}

export interface LaunchOptions {
  /** @default this process's Node */
  readonly node?: string;
  /** Whose `langgraphjs` it is. @default the repository's */
  readonly modules?: string;
  readonly env?: NodeJS.ProcessEnv;
}

export interface Launched {
  readonly url: string;
  log(): string;
  kill(): Promise<void>;
}

/** `langgraphjs dev` in a folder that has a langgraph.json; it may not start. */
export async function launchServer(folder: string, options: LaunchOptions = {}): Promise<Launched> {
  const port = await freePort();
  const modules = options.modules ?? join(root, "node_modules");
  const cli = join(modules, "@langchain/langgraph-cli/dist/cli/cli.mjs");
  const child = spawn(options.node ?? process.execPath, [cli, "dev", "--no-browser", "--port", String(port)], {
    cwd: folder,
    env: { ...cleanEnvironment(), LANGSMITH_TRACING: "false", ...options.env },
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
  return {
    url: `http://127.0.0.1:${port}`,
    log: () => output,
    kill: async () => {
      signalAll(child);
      await ended;
    },
  };
}

/** `langgraphjs dev` in a folder that has a langgraph.json, once it answers. */
export async function startServer(
  folder: string,
  databaseUrl: string,
  options: LaunchOptions = {},
): Promise<DevServer> {
  const env = { LONGHAUL_DATABASE_URL: databaseUrl, ...options.env };
  const server = await launchServer(folder, { ...options, env });
  await until(
    // With authentication it answers 401.
    async () => [200, 401].includes((await fetch(`${server.url}/ok`).catch(() => undefined))?.status ?? 0),
    () => server.log(),
  );
  // A request that fails is the test's to see, not the client's to send again.
  const client = new Client({ apiUrl: server.url, apiKey: null, callerOptions: { maxRetries: 0 } });
  return { ...server, client };
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
