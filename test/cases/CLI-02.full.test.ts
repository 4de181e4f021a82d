// The package as users have it, in the shapes of project that people reported trouble with, under `langgraphjs dev`.
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startServer } from "../support/devServer.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

const STATE = `import { Annotation } from "@langchain/langgraph";
export const State = Annotation.Root({ paid: Annotation<string> });
`;
const graph = (state: string) => `import { START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger } from "langgraph-longhaul";
import { State } from "${state}";
const pay = durableNode(State, async (_state, { step }) => ({ paid: await step.write("pay", {}, async () => "paid") }));
export const graph = durableGraph(new StateGraph(State).addNode("pay", pay).addEdge(START, "pay"), { ledger: openLedger() });
`;
const COMMON_JS = `const { Annotation, START, StateGraph } = require("@langchain/langgraph");
const { durableGraph, durableNode, openLedger } = require("langgraph-longhaul");
const State = Annotation.Root({ paid: Annotation() });
const pay = durableNode(State, async (_state, { step }) => ({ paid: await step.write("pay", {}, async () => "paid") }));
exports.graph = durableGraph(new StateGraph(State).addNode("pay", pay).addEdge(START, "pay"), { ledger: openLedger() });
`;
const NODE_NEXT = { module: "NodeNext", moduleResolution: "NodeNext", target: "ES2022", strict: true };
const esm = JSON.stringify({ name: "app", type: "module", private: true });
const commonJs = JSON.stringify({ name: "app", private: true });
const tsconfig = (options: object) => JSON.stringify({ compilerOptions: { ...NODE_NEXT, ...options } });
const settings = (path: string, more: object = {}) =>
  JSON.stringify({ node_version: "20", graphs: { app: path }, ...more });

interface Shape {
  readonly files: Readonly<Record<string, string>>;
  /** Where langgraph.json is. @default the root */
  readonly folder?: string;
  readonly says?: string;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  "TypeScript with NodeNext": {
    files: {
      "package.json": esm,
      "tsconfig.json": tsconfig({}),
      "langgraph.json": settings("./src/graph.ts:graph"),
      "src/graph.ts": graph("./state.js"),
      "src/state.ts": STATE,
    },
  },
  "a path alias": {
    files: {
      "package.json": esm,
      "tsconfig.json": tsconfig({ paths: { "@/*": ["./src/*"] } }),
      "langgraph.json": settings("./src/graph.ts:graph"),
      "src/graph.ts": graph("@/state.js"),
      "src/state.ts": STATE,
    },
  },
  "a path out of its own folder, in a monorepo": {
    folder: "apps/server",
    files: {
      "package.json": esm,
      "apps/server/package.json": esm,
      "apps/server/langgraph.json": settings("../../packages/graphs/graph.ts:graph"),
      "packages/graphs/package.json": esm,
      "packages/graphs/graph.ts": graph("./state.js"),
      "packages/graphs/state.ts": STATE,
    },
  },
  "TypeScript in a CommonJS app": {
    files: {
      "package.json": commonJs,
      "tsconfig.json": tsconfig({}),
      "langgraph.json": settings("./src/graph.ts:graph"),
      "src/graph.ts": graph("./state"),
      "src/state.ts": STATE,
    },
  },
  "plain CommonJS": {
    files: { "package.json": commonJs, "langgraph.json": settings("./graph.cjs:graph"), "graph.cjs": COMMON_JS },
  },
  "an .env that is missing": {
    says: 'Env file ".env" not found',
    files: {
      "package.json": esm,
      "langgraph.json": settings("./graph.ts:graph", { env: ".env" }),
      "graph.ts": graph("./state.js"),
      "state.ts": STATE,
    },
  },
};

let db: TestDatabase;
let work: string;
let pack: string;
beforeAll(async () => {
  db = await testDatabase();
  work = await mkdtemp(join(tmpdir(), "longhaul-shapes-"));
  pack = join(work, "pack");
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(root, "tsconfig.build.json"), "--outDir", join(pack, "dist")];
  await promisify(execFile)(process.execPath, [compiler, ...options]);
  await cp(join(root, "src/postgres/sql"), join(pack, "dist/postgres/sql"), { recursive: true });
  await cp(join(root, "package.json"), join(pack, "package.json"));
}, 120_000);
afterAll(() => rm(work, { recursive: true, force: true }));

/** As npm lays them out: the package among its peers. */
async function install(folder: string): Promise<void> {
  const modules = join(folder, "node_modules");
  await mkdir(modules, { recursive: true });
  const names = (await readdir(join(root, "node_modules"))).filter((name) => !name.startsWith("."));
  await Promise.all(names.map((name) => symlink(join(root, "node_modules", name), join(modules, name))));
  await cp(pack, join(modules, "langgraph-longhaul"), { recursive: true });
}

describe("CLI-02: projects under langgraphjs dev", () => {
  it.each(Object.entries(SHAPES))(
    "CLI-02: loads %s, and records a step",
    async (name, shape) => {
      const folder = join(work, name.replaceAll(/\W+/g, "-"));
      for (const [file, text] of Object.entries(shape.files)) {
        await mkdir(dirname(join(folder, file)), { recursive: true });
        await writeFile(join(folder, file), text);
      }
      await install(folder);
      const server = await startServer(join(folder, shape.folder ?? ""), db.url);
      try {
        const { thread_id } = await server.client.threads.create();
        expect(await server.client.runs.wait(thread_id, "app", { input: {} }), server.log()).toMatchObject({
          paid: "paid",
        });
        const steps = await db.sql("select name, state from longhaul.steps where thread_id = $1", [thread_id]);
        expect(steps).toEqual([{ name: "pay", state: "SUCCEEDED" }]);
        if (shape.says !== undefined) expect(server.log()).toContain(shape.says);
      } finally {
        await server.kill();
      }
    },
    120_000,
  );
});
