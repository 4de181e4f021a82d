// The import direction of architecture: core <- postgres <- checkpoint, core <- langgraph <- langchain, edges above.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const SRC = fileURLToPath(new URL("../src/", import.meta.url));

/** What each folder may import of ours; "." stands for the files directly in src. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  postgres: ["core"],
  values: ["core"],
  checkpoint: ["core", "postgres", "values"],
  langgraph: ["core", "values"],
  langchain: ["core", "langgraph"],
  openai: ["core", "langgraph"],
  s3: ["core"],
  embedded: [],
  notify: ["core", "postgres"],
  sweep: ["core", "postgres", "checkpoint", "notify"],
  ".": ["core", "postgres", "checkpoint", "langgraph", "embedded", "notify", "sweep"],
  operate: ["core", "postgres", "checkpoint", "langgraph", "notify", "sweep", "."],
  testing: ["core", "postgres", "langgraph", "operate", "."],
  worker: ["core", "postgres", "langgraph", "sweep", "."],
  server: ["core", "postgres", "langgraph", "worker", "operate", "."],
  cli: ["core", "postgres", "checkpoint", "langgraph", "embedded", "worker", "server", "operate", "."],
};
const MAY_IMPORT_LANGCHAIN = ["values", "checkpoint", "langgraph", "langchain", "worker", "cli", "testing"];
const SMALL_PURE_LIBRARIES = ["@cfworker/json-schema", "@pydantic/genai-prices", "cockatiel"];

interface Import {
  readonly file: string;
  readonly folder: string;
  readonly target: string;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => resolve(entry.parentPath, entry.name));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const folder = relative(SRC, dirname(file)).split("/")[0] || ".";
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, target = ""]) => ({
    file: relative(SRC, file),
    folder,
    target,
  }));
}

const imports = filesIn(SRC).flatMap(importsOf);
const ours = imports.filter(({ target }) => target.startsWith("."));
const resolved = ours.map((found) => ({
  ...found,
  path: relative(SRC, resolve(SRC, dirname(found.file), found.target)).replace(/\.js$/, ".ts"),
}));

describe("the source", () => {
  it("imports in one direction", () => {
    // index.ts is the public surface: it names whatever is public, and does nothing.
    const wrong = resolved.filter(({ file, folder, path }) => {
      if (file === "index.ts") return false;
      const target = path.includes("/") ? (path.split("/")[0] ?? "") : ".";
      return target !== folder && !MAY_IMPORT[folder]?.includes(target);
    });
    expect(wrong.map(({ file, path }) => `${file} -> ${path}`)).toEqual([]);
  });

  it("has no folder without a rule", () => {
    expect(
      [...new Set(imports.map(({ folder }) => folder))].filter((folder) => MAY_IMPORT[folder] === undefined),
    ).toEqual([]);
  });

  it("keeps LangChain and LangGraph out of the domain and of PostgreSQL", () => {
    const wrong = imports.filter(
      ({ folder, target }) => target.startsWith("@langchain/") && !MAY_IMPORT_LANGCHAIN.includes(folder),
    );
    expect(wrong.map(({ file, target }) => `${file} -> ${target}`)).toEqual([]);
  });

  it("keeps the core free of everything but Node and small pure libraries", () => {
    const wrong = imports.filter(
      ({ folder, target }) =>
        folder === "core" && !/^(\.|node:)/.test(target) && !SMALL_PURE_LIBRARIES.includes(target),
    );
    expect(wrong.map(({ file, target }) => `${file} -> ${target}`)).toEqual([]);
  });

  it("has no circle of imports", () => {
    const graph = new Map<string, string[]>();
    for (const { file, path } of resolved) graph.set(file, [...(graph.get(file) ?? []), path]);
    const circles: string[] = [];
    const done = new Set<string>();
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) return void circles.push([...trail.slice(trail.indexOf(file)), file].join(" -> "));
      if (done.has(file)) return;
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
      done.add(file);
    };
    for (const file of graph.keys()) visit(file, []);
    expect(circles).toEqual([]);
  });

  it("reads no clock in SQL but its own", () => {
    // The lock of a migration needs no ledger; the doctor compares the server's clock with this machine's.
    const exempt = ["postgres/migrate.ts", "postgres/health.ts"];
    const sql = filesIn(SRC)
      .filter((file) => /\/(postgres|checkpoint)\//.test(file))
      .map((file) => [relative(SRC, file), readFileSync(file, "utf8")] as const);
    const wrong = sql.filter(
      ([file, text]) =>
        /(?<!\.)\b(now\(\)|clock_timestamp\(\)|current_timestamp)/i.test(text.replaceAll("ledger_now()", "")) &&
        !exempt.includes(file),
    );
    expect(wrong.map(([file]) => file)).toEqual([]);
  });
});
