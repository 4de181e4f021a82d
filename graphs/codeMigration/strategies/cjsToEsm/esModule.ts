// What an ES module imports and exports, read from its text.
import type { ModuleShape } from "../../strategy.js";
import { findKinds, type Node, stringValue } from "./syntax.js";

export interface Import {
  readonly specifier: string;
  /** The names that it takes; `default` among them. */
  readonly names: readonly string[];
}

export function importsOf(root: Node): Import[] {
  const statements = [...findKinds(root, "import_statement"), ...findKinds(root, "export_statement")];
  return statements.flatMap((statement) => {
    const specifier = stringValue(statement.field("source"));
    if (specifier === undefined) return [];
    const clause = statement.children().find((child) => child.kind() === "import_clause");
    const byDefault = clause?.children().some((child) => child.kind() === "identifier") ? ["default"] : [];
    const named = findKinds(statement, "import_specifier", "export_specifier").map(
      (part) => part.field("name")?.text() ?? "",
    );
    return [{ specifier, names: [...byDefault, ...named] }];
  });
}

export function exportsOf(root: Node): ModuleShape {
  const names: string[] = [];
  for (const statement of findKinds(root, "export_statement")) {
    const children = statement.children();
    if (children.some((child) => child.kind() === "default")) names.push("default");
    for (const part of findKinds(statement, "export_specifier"))
      names.push((part.field("alias") ?? part.field("name"))?.text() ?? "");
    for (const part of findKinds(statement, "namespace_export")) names.push(part.children().at(-1)?.text() ?? "");
    const declaration = statement.field("declaration");
    const name = declaration?.field("name")?.text();
    if (name !== undefined && !names.includes("default")) names.push(name);
    for (const declarator of declaration?.children().filter((child) => child.kind() === "variable_declarator") ?? [])
      names.push(declarator.field("name")?.text() ?? "");
  }
  return { hasDefault: names.includes("default"), names: names.filter((name) => name !== "default") };
}
