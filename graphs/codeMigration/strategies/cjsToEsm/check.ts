// Whether an ES module fits in: its imports exist, it exports what the others were told, nothing of CommonJS is left.
import { isBuiltin } from "node:module";
import { posix } from "node:path";
import type { PlannedFile } from "../../strategy.js";
import { exportsOf, importsOf } from "./esModule.js";
import { findKinds, type Node, parseScript, requireCalls, topLevelNames } from "./syntax.js";

export function checkModule(file: PlannedFile, files: readonly PlannedFile[], text: string): string[] {
  const root = parseScript(text);
  return [...checkImports(file, files, root), ...checkExports(file, root), ...checkLeftovers(root)];
}

function checkImports(file: PlannedFile, files: readonly PlannedFile[], root: Node): string[] {
  const shapes = new Map(files.map(({ path, exports }) => [path, exports]));
  const known = new Set(file.imports.map(({ target }) => target));
  return importsOf(root).flatMap(({ specifier, names }) => {
    if (!specifier.startsWith(".")) {
      return isBuiltin(specifier) || known.has(specifier)
        ? []
        : [`It imports '${specifier}', which the file did not require.`];
    }
    const path = posix.normalize(posix.join(posix.dirname(file.path), specifier));
    const shape = shapes.get(path);
    if (shape === undefined) return [`It imports '${specifier}', and there is no module "${path}".`];
    const missing = names.filter((name) => (name === "default" ? !shape.hasDefault : !shape.names.includes(name)));
    return missing.map((name) => `It imports ${name} from '${specifier}', which does not export it.`);
  });
}

function checkExports({ exports }: PlannedFile, root: Node): string[] {
  const { hasDefault, names } = exportsOf(root);
  const missing = exports.names.filter((name) => !names.includes(name)).map((name) => `It does not export ${name}.`);
  return exports.hasDefault && !hasDefault ? ["It has no default export.", ...missing] : missing;
}

function checkLeftovers(root: Node): string[] {
  const declared = topLevelNames(root);
  const problems: string[] = [];
  if (requireCalls(root).length > 0 && !declared.has("require"))
    problems.push("It calls require, which an ES module does not have.");
  const writes = findKinds(root, "assignment_expression").map((node) => node.field("left")?.text() ?? "");
  if (!declared.has("module") && writes.some((left) => /^module\.exports\b/.test(left)))
    problems.push("It assigns to module.exports, which an ES module does not have.");
  if (!declared.has("exports") && writes.some((left) => /^exports\./.test(left)) && !declaresAnywhere(root, "exports"))
    problems.push("It assigns to exports, which an ES module does not have.");
  return problems;
}

function declaresAnywhere(root: Node, name: string): boolean {
  return findKinds(root, "formal_parameters").some((node) =>
    findKinds(node, "identifier").some((part) => part.text() === name),
  );
}
