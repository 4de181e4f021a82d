// From `module.exports` to `export`, in the way that the file's own style allows.
import { type ExportsUse, esModuleMark, exportStyle, exportsUses } from "../../../strategies/cjsToEsm/commonJs.js";
import {
  allNames,
  end,
  findKinds,
  isTopLevelThis,
  type Node,
  requiredBy,
  start,
  topLevelNames,
} from "../../../strategies/cjsToEsm/syntax.js";
import type { Edit } from "./edits.js";
import type { Task } from "./facts.js";
import type { Names } from "./names.js";

export interface Exports {
  readonly edits: readonly Edit[];
  readonly top: readonly string[];
  readonly bottom: readonly string[];
}

export function rewriteExports(root: Node, task: Task, names: Names): Exports {
  const style = exportStyle(root);
  const marks = exportsUses(root).flatMap(({ node }) => esModuleMark(node) ?? []);
  const dropped = marks.map((mark): Edit => ({ from: start(mark), to: end(mark), text: "" }));
  if (style.style === "none") return { edits: dropped, top: [], bottom: [] };
  if (style.style === "named") {
    const named = rewriteNamed(root, task, names);
    return { ...named, edits: [...dropped, ...named.edits] };
  }
  if (style.style === "single") return rewriteSingle(style.use);
  if (style.style === "object") return rewriteObject(root, style.use, names);
  return keepObject(root);
}

/** `module.exports = x;` alone. */
function rewriteSingle({ statement, value }: ExportsUse): Exports {
  if (!statement || !value) return { edits: [], top: [], bottom: [] };
  const declares = value.kind() === "function_expression" || value.kind() === "class";
  // A named function expression's name is its own; as a declaration it would be the module's.
  const semicolon = { from: end(value), to: end(statement), text: declares ? "" : ";" };
  return {
    edits: [{ from: start(statement), to: start(value), text: "export default " }, semicolon],
    top: [],
    bottom: [],
  };
}

/** `module.exports = x;` and then `module.exports.y = …`: `x` gets a name. */
function rewriteObject(root: Node, { statement, value }: ExportsUse, names: Names): Exports {
  if (!statement || !value) return { edits: [], top: [], bottom: [] };
  const known =
    value.kind() === "identifier" && topLevelNames(root).has(value.text()) && !isAssigned(root, value.text());
  const name = known ? value.text() : names.free("api");
  const whole: Edit = known
    ? { from: start(statement), to: end(statement), text: "" }
    : { from: start(statement), to: start(value), text: `const ${name} = ` };
  const uses = exportsUses(root).filter(
    ({ node, object }) => object.text() === "module.exports" && start(node) !== start(statement),
  );
  const edits = uses.map(({ object }): Edit => ({ from: start(object), to: end(object), text: name }));
  return { edits: [whole, ...edits], top: [], bottom: [`export default ${name};`] };
}

function isAssigned(root: Node, name: string): boolean {
  return findKinds(root, "assignment_expression").some((node) => node.field("left")?.text() === name);
}

/** The file does with its exports what no ES module can: it gets the object, and what that is in the end is the default export. */
function keepObject(root: Node): Exports {
  const edits = findKinds(root, "this")
    .filter(isTopLevelThis)
    .map((node): Edit => ({ from: start(node), to: end(node), text: "module.exports" }));
  const direct = exportsUses(root).some(({ object }) => object.text() === "exports");
  const top = ["const module = { exports: {} };", ...(direct ? ["let exports = module.exports;"] : [])];
  return { edits, top, bottom: ["export default module.exports;"] };
}

function rewriteNamed(root: Node, task: Task, names: Names): Exports {
  const uses = exportsUses(root);
  const used = allNames(root);
  const declared = topLevelNames(root);
  const edits: Edit[] = [];
  const renamed = new Map<string, string>();
  for (const use of uses) {
    const { statement, value, property } = use;
    if (!statement || !value || property === undefined) continue;
    const others = uses.some((other) => other !== use && other.property === property);
    const again = others ? undefined : exportFrom(property, value, task);
    if (again !== undefined) {
      edits.push({ from: start(statement), to: end(statement), text: again });
      continue;
    }
    if (value.kind() === "identifier" && declared.has(value.text()) && !others) {
      edits.push({ from: start(statement), to: end(statement), text: exportAs(value.text(), property) });
      continue;
    }
    const name = used.has(property) ? names.free(`_${property}`) : property;
    renamed.set(property, name);
    const opening = name === property ? `export const ${name} = ` : `const ${name} = `;
    edits.push({ from: start(statement), to: start(value), text: opening });
    edits.push({
      from: end(value),
      to: end(statement),
      text: name === property ? ";" : `;\n${exportAs(name, property)}`,
    });
  }
  for (const { node, statement, property = "" } of uses) {
    const name = renamed.get(property);
    if (!statement && name !== undefined) edits.push({ from: start(node), to: end(node), text: name });
  }
  return { edits, top: [], bottom: [] };
}

const exportAs = (name: string, as: string): string =>
  name === as ? `export { ${name} };` : `export { ${name} as ${as} };`;

/** `exports.a = require("./a");` is one statement of an ES module too. */
function exportFrom(property: string, value: Node, { facts }: Task): string | undefined {
  const member = value.kind() === "member_expression" ? value.field("object") : undefined;
  const call =
    requiredBy(value) !== undefined ? value : member && requiredBy(member) !== undefined ? member : undefined;
  const fact = call && facts.get(requiredBy(call) ?? "");
  if (fact?.target === undefined) return undefined;
  const from = `from '${fact.target}';`;
  if (call?.id() === value.id()) {
    if (typeof fact.exports === "string") return `export { default as ${property} } ${from}`;
    return `export * as ${property} ${from}`;
  }
  const name = value.field("property")?.text() ?? "";
  if (typeof fact.exports === "string" || !fact.exports.includes(name)) return undefined;
  return name === property ? `export { ${name} } ${from}` : `export { ${name} as ${property} } ${from}`;
}
