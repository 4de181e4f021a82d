// How a CommonJS file hands out what it exports. Of the many ways to write that, three have a counterpart of their own in
// ES modules; for every other way, whatever `module.exports` holds in the end is the default export.
import type { ModuleShape } from "../../strategy.js";
import { allNames, findKinds, isBindingName, type Node, parseScript } from "./syntax.js";

/** A place where the file speaks of `exports` or `module.exports`. */
export interface ExportsUse {
  /** `exports`, or `module.exports`; with its property, where it has one. */
  readonly node: Node;
  /** Just `exports` or `module.exports`. */
  readonly object: Node;
  readonly property: string | undefined;
  /** The whole statement, where this is the target of a top-level assignment. */
  readonly statement: Node | undefined;
  /** What is assigned there. */
  readonly value: Node | undefined;
}

export type ExportStyle =
  | { readonly style: "none" }
  /** `exports.a = …` at the top level, each name once. */
  | { readonly style: "named"; readonly names: readonly string[] }
  /** One `module.exports = …`, and nothing else. */
  | { readonly style: "single"; readonly use: ExportsUse }
  /** One `module.exports = …` at the top level, and properties of it. */
  | { readonly style: "object"; readonly use: ExportsUse }
  | { readonly style: "other" };

export function exportsUses(root: Node): ExportsUse[] {
  const uses: ExportsUse[] = [];
  for (const node of findKinds(root, "identifier")) {
    const name = node.text();
    if (name !== "exports" && name !== "module") continue;
    const parent = node.parent();
    if (parent?.kind() === "member_expression" && parent.field("property")?.id() === node.id()) continue;
    if (name === "module") {
      const whole =
        parent?.kind() === "member_expression" && parent.field("property")?.text() === "exports" ? parent : undefined;
      if (whole) uses.push(useAt(whole));
      else uses.push({ node, object: node, property: undefined, statement: undefined, value: undefined });
    } else uses.push(useAt(node));
  }
  return uses;
}

function useAt(object: Node): ExportsUse {
  const parent = object.parent();
  const member =
    parent?.kind() === "member_expression" && parent.field("object")?.id() === object.id() ? parent : undefined;
  const node = member ?? object;
  const assignment = node.parent();
  const assigned = assignment?.kind() === "assignment_expression" && assignment.field("left")?.id() === node.id();
  const statement = assigned ? assignment.parent() : undefined;
  const topLevel = statement?.kind() === "expression_statement" && statement.parent()?.kind() === "program";
  return {
    node,
    object,
    property: member?.field("property")?.text(),
    statement: topLevel ? (statement ?? undefined) : undefined,
    value: topLevel ? (assignment?.field("right") ?? undefined) : undefined,
  };
}

/** Mentions that mean nothing in an ES module: `require.main === module`, and the mark that transpilers leave. */
export function isMarker({ node }: ExportsUse): boolean {
  const parent = node.parent();
  if (parent?.kind() === "binary_expression" && /\brequire\.main\b/.test(parent.text())) return true;
  return esModuleMark(node) !== undefined;
}

/** `Object.defineProperty(exports, "__esModule", …);` */
export function esModuleMark(node: Node): Node | undefined {
  const statement = node.ancestors().find((ancestor) => ancestor.kind() === "expression_statement");
  return /^Object\.defineProperty\(\s*(module\.)?exports\s*,\s*['"]__esModule['"]/.test(statement?.text() ?? "")
    ? statement
    : undefined;
}

export function exportStyle(root: Node): ExportStyle {
  const uses = exportsUses(root).filter((use) => !isMarker(use));
  if (uses.length === 0) return { style: "none" };
  // A parameter or variable of that name is not the module's.
  if (declares(root, "exports") || declares(root, "module")) return { style: "other" };
  const names = uses.filter((use) => use.statement && use.property !== undefined).map((use) => use.property ?? "");
  const named = uses.every(
    ({ property }) => property !== undefined && isBindingName(property) && names.includes(property),
  );
  const writtenOnce =
    new Set(names).size === names.length && !uses.some((use) => !use.statement && isWritten(use.node));
  const plain = uses.every(
    ({ value }) => value === undefined || !exportsUses(value).some((inner) => isWritten(inner.node)),
  );
  if (named && writtenOnce && plain) return { style: "named", names };
  const wholes = uses.filter(({ statement, property }) => statement && property === undefined);
  const [use] = wholes;
  if (wholes.length !== 1 || use?.object.text() !== "module.exports") return { style: "other" };
  if (uses.length === 1) return { style: "single", use };
  return uses.every((other) => isPart(other, use)) ? { style: "object", use } : { style: "other" };
}

/** After `module.exports = x`, `exports` is another object; only `exports = module.exports = x` keeps them one. */
function isPart(other: ExportsUse, whole: ExportsUse): boolean {
  if (other === whole) return true;
  return other.object.text() === "module.exports" && !(other.property === undefined && isWritten(other.node));
}

function isWritten(node: Node): boolean {
  const parent = node.parent();
  const kind = parent?.kind();
  if (kind === "assignment_expression" || kind === "augmented_assignment_expression")
    return parent?.field("left")?.id() === node.id();
  return kind === "update_expression" || (kind === "unary_expression" && /^delete\b/.test(parent?.text() ?? ""));
}

function declares(root: Node, name: string): boolean {
  return findKinds(root, "identifier").some((node) => {
    if (node.text() !== name) return false;
    const parent = node.parent();
    const kind = parent?.kind();
    if (kind === "formal_parameters") return true;
    if (kind === "variable_declarator") return parent?.field("name")?.id() === node.id();
    return (
      (kind === "function_declaration" || kind === "function_expression") && parent?.field("name")?.id() === node.id()
    );
  });
}

const NOTHING: ModuleShape = { hasDefault: false, names: [] };

/** What the file is to export as an ES module. */
export function shapeOf(text: string): ModuleShape {
  const style = exportStyle(parseScript(text));
  if (style.style === "none") return NOTHING;
  return style.style === "named" ? { hasDefault: false, names: style.names } : { hasDefault: true, names: [] };
}

/** Whether the file is CommonJS, an ES module, or neither says so. */
export function formatOf(text: string): "commonjs" | "module" | "script" {
  const root = parseScript(text);
  if (root.children().some((child) => child.kind() === "import_statement" || child.kind() === "export_statement"))
    return "module";
  const names = allNames(root);
  return ["require", "module", "exports", "__dirname", "__filename"].some((name) => names.has(name))
    ? "commonjs"
    : "script";
}
