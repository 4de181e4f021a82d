// Which files are a package's tests, what runs them, and what must be installed for that.
import { isBuiltin } from "node:module";
import { type Refusal, refuse } from "../outcome.js";
import type { SourceTree } from "../strategy.js";
import type { SuitePlan } from "./report.js";

const TEST_FOLDERS = /^(test|tests|__tests__|spec)\//;
const TEST_FILES = /(^|\/)(test|tests)\.c?js$|[.-](test|spec)\.c?js$/;
const SCRIPT = /\.[cm]?js$/;
/** Files that tests read, and nobody runs. */
export const FIXTURES = /(^|\/)(fixtures?|__fixtures__|node_modules)\//;
const UNSUPPORTED = [
  "jest",
  "ava",
  "vitest",
  "jasmine",
  "karma",
  "nodeunit",
  "vows",
  "lab",
  "uvu",
  "qunit",
  "expresso",
];
/** The oldest versions of the runners that run both CommonJS and ES modules on today's Node. */
const RUNNERS: Readonly<Record<string, string>> = { tape: "^5.9.0", mocha: "^10.8.0", tap: "^16.3.10" };
const REQUIRED = /\brequire\(\s*(['"])([^'"\n]+)\1\s*\)/g;
const IMPORTED = /\b(?:from|import)\s*(['"])([^'"\n]+)\1/g;

interface Manifest {
  readonly name?: unknown;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export async function planSuite(tree: SourceTree): Promise<SuitePlan | Refusal> {
  const manifest = JSON.parse(await tree.read("package.json")) as Manifest;
  const script = testScript(manifest);
  const scripts = tree.paths.filter((path) => SCRIPT.test(path) && !FIXTURES.test(path));
  const texts = new Map(await Promise.all(scripts.map(async (path) => [path, await tree.read(path)] as const)));
  const files = testFiles(scripts, script);
  if (files.length === 0)
    return refuse("no-tests", "The package has no test files in its tarball, so nothing could judge its migration.");
  const packages = new Set([...texts.values()].flatMap(packagesIn).filter((name) => name !== manifest.name));
  const said = [script, ...packages].join(" ");
  const runner = files.some((file) =>
    packagesIn(texts.get(file) ?? "").some((name) => name === "tape" || name === "tap"),
  )
    ? "tap"
    : files.some((file) => /['"]node:test['"]/.test(texts.get(file) ?? ""))
      ? "node-test"
      : /\bmocha\b/.test(script) ||
          files.some((file) => /^\s*describe\(/m.test(texts.get(file) ?? "") && !unsupported(said))
        ? "mocha"
        : "plain";
  const other = unsupported(said);
  if (runner === "plain" && other !== undefined)
    return refuse(
      "unknown-test-runner",
      `Its tests run with ${other}. Tests of tape, tap, mocha and node:test can be run, and plain scripts.`,
    );
  const needed = new Set([
    ...packages,
    ...Object.keys(manifest.dependencies ?? {}),
    ...(runner === "mocha" ? ["mocha"] : []),
  ]);
  return { runner, files, install: [...needed].flatMap((name) => versioned(name, manifest)).sort() };
}

function unsupported(text: string): string | undefined {
  return UNSUPPORTED.find((name) => new RegExp(`(^|[\\s/"'])${name}\\b`).test(text));
}

/** The script that runs the tests and nothing else, where there is one. */
function testScript({ scripts = {} }: Manifest): string {
  return scripts["tests-only"] ?? scripts["test:unit"] ?? scripts["unit"] ?? scripts["test"] ?? "";
}

/** Files that the script names, else all where tests usually are. */
function testFiles(scripts: readonly string[], script: string): string[] {
  const words = [...script.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
  const named = words
    .map((word) => word.replace(/^\.\//, ""))
    .filter((word) => /\.c?js$|\*/.test(word) && !word.startsWith("-") && !word.includes("node_modules"))
    .flatMap((pattern) => scripts.filter((path) => globbed(pattern).test(path)));
  const usual = scripts.filter((path) => TEST_FOLDERS.test(path) || TEST_FILES.test(path));
  const found = named.filter((path) => TEST_FOLDERS.test(path) || TEST_FILES.test(path) || /test/i.test(path));
  return [...new Set(found.length > 0 ? found : usual)].sort();
}

function globbed(pattern: string): RegExp {
  const body = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*\*\//g, "(.+/)?")
    .replace(/\*\*/g, ".*")
    .replace(/(?<![.)])\*/g, "[^/]*");
  return new RegExp(`^${body}$`);
}

/** The packages that a text requires or imports. */
function packagesIn(text: string): string[] {
  return [...text.matchAll(REQUIRED), ...text.matchAll(IMPORTED)]
    .map(([, , specifier = ""]) => specifier)
    .filter((specifier) => !specifier.startsWith(".") && !specifier.startsWith("/") && !isBuiltin(specifier))
    .map((specifier) =>
      specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/"),
    );
}

/** Only what the package declares is installed: a name that merely stands in a text could be anybody's. */
function versioned(name: string, manifest: Manifest): string[] {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest;
  const declared =
    dependencies?.[name] ?? devDependencies?.[name] ?? peerDependencies?.[name] ?? optionalDependencies?.[name];
  if (RUNNERS[name] !== undefined) return [`${name}@${RUNNERS[name]}`];
  if (declared === undefined || !/^[\w.^~<>=|* -]*$/.test(declared)) return [];
  return [`${name}@${declared || "*"}`];
}
