// The stand-in's answer to an error: what Node says about an ES module names what is missing, and each rule mends one such saying.
import {
  allNames,
  end,
  findKinds,
  type Node,
  parseScript,
  start,
  stringValue,
} from "../../../strategies/cjsToEsm/syntax.js";
import { applyEdits, type Edit } from "./edits.js";
import { Names } from "./names.js";

/** The text, mended as far as the errors say how. */
export function repairText(text: string, errors: string): string {
  const rules = [missingDefaults, missingNames, undeclaredNames, calledNamespaces];
  return rules.reduce((mended, rule) => rule(mended, errors), text);
}

function importsFrom(root: Node, specifier: string): Node[] {
  return findKinds(root, "import_statement").filter(
    (statement) => stringValue(statement.field("source")) === specifier,
  );
}

const MISSING = /(?:module|Module) '([^']+)' does not provide an export named '([^']+)'/g;

/** A module without a default export is imported whole. */
function missingDefaults(text: string, errors: string): string {
  const root = parseScript(text);
  const edits = [...errors.matchAll(MISSING)].flatMap(([, specifier = "", name]): Edit[] => {
    if (name !== "default") return [];
    return importsFrom(root, specifier).flatMap((statement) => {
      const local = findKinds(statement, "import_clause")[0]?.children()[0];
      return local?.kind() === "identifier" ? [{ from: start(local), to: start(local), text: "* as " }] : [];
    });
  });
  return applyEdits(text, edits);
}

/** A CommonJS module whose names Node cannot see has them on its default export. */
function missingNames(text: string, errors: string): string {
  const root = parseScript(text);
  const names = new Names(allNames(root));
  const wanted = new Set(
    [...errors.matchAll(MISSING)].filter(([, , name]) => name !== "default").map(([, specifier = ""]) => specifier),
  );
  const edits = [...wanted].flatMap((specifier) =>
    importsFrom(root, specifier).flatMap((statement): Edit[] => {
      const parts = findKinds(statement, "import_specifier");
      if (parts.length === 0) return [];
      const whole = names.for(specifier);
      const pattern = parts.map((part) => {
        const name = part.field("name")?.text() ?? "";
        const alias = part.field("alias")?.text();
        return alias === undefined ? name : `${name}: ${alias}`;
      });
      return [
        {
          from: start(statement),
          to: end(statement),
          text: `import ${whole} from '${specifier}';\nconst { ${pattern.join(", ")} } = ${whole};`,
        },
      ];
    }),
  );
  return applyEdits(text, edits);
}

/** Sloppy code may assign to what nobody declared; a module may not. */
function undeclaredNames(text: string, errors: string): string {
  const root = parseScript(text);
  const missing = new Set(
    [...errors.matchAll(/ReferenceError: ([\w$]+) is not defined/g)].map(([, name = ""]) => name),
  );
  const lines = [...missing].flatMap((name): string[] => {
    if (name === "require")
      return ["import { createRequire } from 'node:module';", "const require = createRequire(import.meta.url);"];
    const written = [
      ...findKinds(root, "assignment_expression"),
      ...findKinds(root, "for_in_statement"),
      ...findKinds(root, "update_expression"),
    ];
    const assigned = written.some((node) => (node.field("left") ?? node.field("argument"))?.text() === name);
    return assigned ? [`let ${name};`] : [];
  });
  if (lines.length === 0) return text;
  const at = root.children().find((child) => child.kind() !== "comment" && child.kind() !== "hash_bang_line");
  const from = at ? start(at) : end(root);
  return applyEdits(text, [{ from, to: from, text: `${lines.join("\n")}\n` }]);
}

/** What is called is the default export. */
function calledNamespaces(text: string, errors: string): string {
  const root = parseScript(text);
  const called = new Set(
    [...errors.matchAll(/TypeError: ([\w$]+) is not a (?:function|constructor)/g)].map(([, name = ""]) => name),
  );
  const edits = findKinds(root, "namespace_import").flatMap((node): Edit[] => {
    const name = node.children().at(-1)?.text() ?? "";
    return called.has(name) ? [{ from: start(node), to: end(node), text: name }] : [];
  });
  return applyEdits(text, edits);
}
