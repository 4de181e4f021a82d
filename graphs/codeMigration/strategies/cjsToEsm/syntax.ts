// A JavaScript text as a tree, and the few questions about it that a module migration asks.
import { Lang, parse, type SgNode } from "@ast-grep/napi";

export type Node = SgNode;

export function parseScript(text: string): Node {
  return parse(Lang.JavaScript, text).root();
}

export function findKinds(root: Node, ...kinds: readonly string[]): Node[] {
  return kinds.flatMap((kind) => root.findAll({ rule: { kind } }));
}

export function start(node: Node): number {
  return node.range().start.index;
}

export function end(node: Node): number {
  return node.range().end.index;
}

/** The text between the quotes; undefined for what is no plain string. */
export function stringValue(node: Node | null | undefined): string | undefined {
  if (node?.kind() !== "string") return undefined;
  return node.text().slice(1, -1);
}

/** The argument of `require("…")`; undefined for every other node. */
export function requiredBy(node: Node): string | undefined {
  if (node.kind() !== "call_expression" || node.field("function")?.text() !== "require") return undefined;
  const args =
    node
      .field("arguments")
      ?.children()
      .filter((child) => child.isNamed() && child.kind() !== "comment") ?? [];
  return args.length === 1 ? stringValue(args[0]) : undefined;
}

/** All `require` calls of one literal string. */
export function requireCalls(root: Node): Node[] {
  return findKinds(root, "call_expression").filter((call) => requiredBy(call) !== undefined);
}

const FUNCTIONS = new Set([
  "function_declaration",
  "function_expression",
  "arrow_function",
  "method_definition",
  "generator_function",
  "generator_function_declaration",
]);

export function isFunction(node: Node): boolean {
  return FUNCTIONS.has(String(node.kind()));
}

export function isWithin(node: Node, kinds: ReadonlySet<string>): boolean {
  return node.ancestors().some((ancestor) => kinds.has(String(ancestor.kind())));
}

export function inFunction(node: Node): boolean {
  return isWithin(node, FUNCTIONS);
}

/** Whether the module's own `this` is meant: not a function's, but an arrow's. */
export function isTopLevelThis(node: Node): boolean {
  return !node.ancestors().some((ancestor) => isFunction(ancestor) && ancestor.kind() !== "arrow_function");
}

/** Names that the module's top level declares: `var` in blocks too. */
export function topLevelNames(root: Node): Set<string> {
  const names = new Set<string>();
  for (const child of root.children()) {
    const named = ["function_declaration", "class_declaration", "generator_function_declaration"].includes(
      String(child.kind()),
    );
    if (named) names.add(child.field("name")?.text() ?? "");
  }
  for (const declarator of findKinds(root, "variable_declarator")) {
    if (inFunction(declarator)) continue;
    const name = declarator.field("name");
    if (name?.kind() === "identifier") names.add(name.text());
    else if (name)
      for (const part of findKinds(name, "identifier", "shorthand_property_identifier_pattern")) names.add(part.text());
  }
  return names;
}

/** Every bare name in the text, whatever it means: a new name is none of them. */
export function allNames(root: Node): Set<string> {
  const kinds = ["identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"];
  return new Set(findKinds(root, ...kinds).map((node) => node.text()));
}

const RESERVED = new Set(
  (
    "break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in " +
    "instanceof interface let new null package private protected public return static super switch this throw true try typeof var void while with " +
    "yield await eval arguments"
  ).split(" "),
);

export function isBindingName(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name) && !RESERVED.has(name);
}
