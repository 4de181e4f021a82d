// Every word that the graph says to a model about CommonJS and ES modules. What a file imports and must export is said as
// facts: the files are edited at once, and what one exports another imports.
import type { Prompt } from "../../prompt.js";
import type { ImportFact, ModuleShape, PlannedFile } from "../../strategy.js";

const SYSTEM =
  "You migrate one file of a package from CommonJS to ES modules for Node.js. Keep behaviour, comments and style; change nothing else. " +
  "Import what the facts say, under exactly the specifiers that they name, and export exactly what they say: other files rely on it. " +
  "A package and a module of Node.js are imported by their default export. What cannot be imported is loaded with createRequire(import.meta.url). " +
  "There is no require, module, exports, __dirname or __filename in an ES module, its top-level `this` is undefined, and it is always strict: " +
  "every variable must be declared. " +
  'Answer with JSON: { "path": the file\'s path, "text": the whole new text of the file, "commands": [] }.';

export function migrationPrompt(
  file: PlannedFile,
  files: readonly PlannedFile[],
  source: string,
  errors: string,
): Prompt {
  const shapes = new Map(files.map(({ path, exports }) => [path, exports]));
  const user = [
    `File: ${file.path}`,
    "Facts:",
    ...file.imports.map((fact) => `- ${importFact(fact, shapes)}`),
    `- this file exports ${exportFact(file.exports)}`,
    ...(errors === "" ? [] : ["What was wrong with it as it stands:", "<errors>", errors, "</errors>"]),
    `<file path="${file.path}">`,
    source,
    "</file>",
  ];
  return { system: SYSTEM, user: user.join("\n") };
}

function importFact({ specifier, target, path }: ImportFact, shapes: ReadonlyMap<string, ModuleShape>): string {
  if (target === undefined) return `'${specifier}' cannot be imported: createRequire`;
  const shape = path === undefined ? undefined : shapes.get(path);
  if (shape === undefined) return `'${specifier}' is the package '${target}'`;
  return `'${specifier}' is the file '${target}', which exports ${exportFact(shape)}`;
}

function exportFact({ hasDefault, names }: ModuleShape): string {
  if (hasDefault) return "default";
  return names.length === 0 ? "nothing" : `{ ${names.join(", ")} }`;
}
