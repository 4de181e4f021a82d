// The offline stand-in's edit of one file: a codemod over the syntax tree of the text in the prompt, guided by the prompt's facts.
import { allNames, end, type Node, parseScript, start } from "../../../strategies/cjsToEsm/syntax.js";
import { applyEdits } from "./edits.js";
import { rewriteExports } from "./exports.js";
import type { Task } from "./facts.js";
import { rewriteGlobals } from "./globals.js";
import { ImportRewriter } from "./imports.js";
import { Names } from "./names.js";

export function migrateText(task: Task): string {
  const root = parseScript(task.source);
  const names = new Names(allNames(root));
  const exported = rewriteExports(root, task, names);
  const imported = new ImportRewriter(root, task, names, exported.edits).rewrite();
  const globals = rewriteGlobals(root, imported.needsRequire);
  const top = [
    ...imported.hoisted,
    ...globals.top.filter(isImport),
    ...globals.top.filter((line) => !isImport(line)),
    ...exported.top,
  ];
  const edits = [...exported.edits, ...imported.edits, ...globals.edits];
  if (top.length > 0) {
    const at = topOf(root);
    edits.push({ from: at, to: at, text: `${top.join("\n")}\n\n` });
  }
  const text = applyEdits(task.source, edits);
  return exported.bottom.length === 0 ? text : `${text.trimEnd()}\n\n${exported.bottom.join("\n")}\n`;
}

const isImport = (line: string): boolean => line.startsWith("import ");

/** After the first comments and directives. */
function topOf(root: Node): number {
  const first = root
    .children()
    .find(
      (child) =>
        child.kind() !== "comment" && child.kind() !== "hash_bang_line" && !/^(['"])use strict\1;?$/.test(child.text()),
    );
  return first ? start(first) : end(root);
}
