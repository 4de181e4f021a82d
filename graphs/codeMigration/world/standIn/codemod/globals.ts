// What CommonJS gives a file without being asked, and an ES module does not.
import { allNames, end, findKinds, type Node, start } from "../../../strategies/cjsToEsm/syntax.js";
import type { Edit } from "./edits.js";

export interface Globals {
  readonly edits: readonly Edit[];
  /** Imports and declarations for the top. */
  readonly top: readonly string[];
}

export function rewriteGlobals(root: Node, needsRequire: boolean): Globals {
  const used = allNames(root);
  const edits = mainChecks(root);
  const directory = used.has("__dirname");
  const file = directory || used.has("__filename") || edits.length > 0;
  const top: string[] = [];
  if (needsRequire) top.push("import { createRequire } from 'node:module';");
  if (directory) top.push("import { dirname as dirnameOf } from 'node:path';");
  if (file) top.push("import { fileURLToPath } from 'node:url';");
  if (needsRequire) top.push("const require = createRequire(import.meta.url);");
  if (used.has("__filename") || directory) top.push("const __filename = fileURLToPath(import.meta.url);");
  if (directory) top.push("const __dirname = dirnameOf(__filename);");
  return { edits: [...edits, ...useStrict(root)], top };
}

/** `require.main === module` */
function mainChecks(root: Node): Edit[] {
  return findKinds(root, "binary_expression").flatMap((node): Edit[] => {
    const text = node.text().replaceAll(/\s+/g, " ");
    const isMain = /^(require\.main [!=]==? module|module [!=]==? require\.main)$/.test(text);
    if (!isMain) return [];
    const operator = text.includes("!=") ? "!==" : "===";
    return [{ from: start(node), to: end(node), text: `process.argv[1] ${operator} fileURLToPath(import.meta.url)` }];
  });
}

/** Modules are strict without saying so. */
function useStrict(root: Node): Edit[] {
  const statement = root.children().find((child) => child.kind() !== "comment" && child.kind() !== "hash_bang_line");
  if (statement?.kind() !== "expression_statement" || !/^(['"])use strict\1;?$/.test(statement.text())) return [];
  const after = root.text().slice(end(statement) - start(root));
  const blank = /^[ \t]*\r?\n(\r?\n)?/.exec(after)?.[0].length ?? 0;
  return [{ from: start(statement), to: end(statement) + blank, text: "" }];
}
