// CommonJS to ES modules: every .js file of the package becomes one, its tests and examples too, because `"type": "module"`
// means all of them.
import { type Refusal, refuse } from "../../outcome.js";
import { commonJsSyntaxError } from "../../sandbox/syntax.js";
import type { ImportFact, MigrationPlan, PlannedFile, SourceTree, Strategy } from "../../strategy.js";
import { FIXTURES } from "../../suite/planSuite.js";
import { checkModule } from "./check.js";
import { formatOf, shapeOf } from "./commonJs.js";
import { esmManifest } from "./manifest.js";
import { migrationPrompt } from "./prompt.js";
import { factOf, inDependencyOrder, packageOf } from "./resolve.js";
import { parseScript, requireCalls, requiredBy } from "./syntax.js";

/** A model answers with the whole file; this is near the most that one answer holds. */
const MAX_FILE_CHARS = 60_000;
const NATIVE = new Set(["binding.gyp", "prebuilds"]);
const NATIVE_LOADERS = [
  "bindings",
  "node-gyp-build",
  "node-addon-api",
  "nan",
  "node-pre-gyp",
  "@mapbox/node-pre-gyp",
  "prebuild-install",
];

interface Manifest {
  readonly type?: unknown;
  readonly main?: unknown;
  readonly name?: unknown;
  readonly exports?: unknown;
  readonly gypfile?: unknown;
  readonly dependencies?: Readonly<Record<string, unknown>>;
}

export const cjsToEsm: Strategy = {
  name: "cjs-to-esm",
  title: "CommonJS to ES modules",
  examine,
  plan,
  prompt: migrationPrompt,
  check: checkModule,
  manifest: esmManifest,
};

async function examine(tree: SourceTree): Promise<Refusal | undefined> {
  const manifest = await manifestOf(tree);
  if ("status" in manifest) return manifest;
  const native = nativeCode(tree, manifest);
  if (native !== undefined)
    return refuse("native-code", `It has native code (${native}), which is built and loaded by means of CommonJS.`);
  if (manifest.type === "module" || JSON.stringify(manifest.exports ?? "").includes('"import"'))
    return refuse("already-esm", "It is published as ES modules already: its package.json says so.");
  const texts = await scriptsOf(tree);
  if (texts.length > 0 && texts.every(({ text }) => formatOf(text) === "module"))
    return refuse("already-esm", "Every .js file is an ES module already.");
  const long = texts.find(({ text }) => text.length > MAX_FILE_CHARS);
  if (long)
    return refuse(
      "file-too-large",
      `"${long.path}" has ${long.text.length} characters; a model can be asked for at most ${MAX_FILE_CHARS}.`,
    );
  for (const { path, text } of texts) {
    if (formatOf(text) === "module") continue;
    const error = commonJsSyntaxError(text);
    if (error !== undefined) return refuse("syntax-error", `"${path}" does not parse: ${error}.`);
  }
  return undefined;
}

/** The texts that a package of ES modules must have as ES modules. */
async function scriptsOf(tree: SourceTree): Promise<{ path: string; text: string }[]> {
  const paths = tree.paths.filter((path) => path.endsWith(".js") && !FIXTURES.test(path));
  return await Promise.all(paths.map(async (path) => ({ path, text: await tree.read(path) })));
}

async function plan(tree: SourceTree): Promise<MigrationPlan> {
  const manifest = await manifestOf(tree);
  const about = packageOf(tree.paths, "status" in manifest ? {} : manifest);
  const texts = (await scriptsOf(tree)).filter(({ text }) => formatOf(text) !== "module");
  const files = texts.map(async ({ path, text }): Promise<PlannedFile> => {
    const specifiers = new Set(requireCalls(parseScript(text)).map((call) => requiredBy(call) ?? ""));
    const facts = [...specifiers].map((specifier) => factOf(path, specifier, about));
    return {
      path,
      imports: await Promise.all(facts.map((fact) => withPackageFile(fact, tree))),
      exports: shapeOf(text),
    };
  });
  return { files: inDependencyOrder(await Promise.all(files)) };
}

/** `import` wants a file's whole name in packages too, where they do not say otherwise. */
async function withPackageFile(fact: ImportFact, tree: SourceTree): Promise<ImportFact> {
  if (fact.target === undefined || fact.path !== undefined) return fact;
  return { ...fact, target: (await tree.packageFile?.(fact.target)) ?? fact.target };
}

async function manifestOf(tree: SourceTree): Promise<Manifest | Refusal> {
  if (!tree.paths.includes("package.json")) return refuse("bad-input", "There is no package.json at its top.");
  try {
    const manifest: unknown = JSON.parse(await tree.read("package.json"));
    if (typeof manifest === "object" && manifest !== null) return manifest;
  } catch {
    // Said below.
  }
  return refuse("bad-input", "Its package.json does not hold a JSON object.");
}

function nativeCode({ paths }: SourceTree, { gypfile, dependencies = {} }: Manifest): string | undefined {
  if (gypfile === true) return "gypfile in package.json";
  const file = paths.find((path) => NATIVE.has(path.split("/")[0] ?? "") || path.endsWith(".node"));
  return file ?? NATIVE_LOADERS.find((name) => name in dependencies);
}
