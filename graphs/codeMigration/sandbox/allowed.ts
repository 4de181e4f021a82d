// The commands that may run, all of them Node: check a text's syntax, and run a file of the tree. Everything else is refused,
// whoever asks for it.
import { realpathSync } from "node:fs";
import { join, sep } from "node:path";

/** The one program of `node_modules` that is run by name. */
export const MOCHA = "node_modules/mocha/bin/mocha.js";

const CHECKS = new Set(["--input-type=module", "--input-type=commonjs"]);
const REPORTERS = new Set(["--test-reporter=tap"]);

/** @returns why the command is refused, or undefined. */
export function refusedCommand(argv: readonly string[], folder: string): string | undefined {
  const [program, first = "", ...rest] = argv;
  if (program !== "node") return `"${program}" is not among the allowed commands; only node is`;
  if (first === "--check") {
    if (rest.length === 2 && CHECKS.has(rest[0] ?? "") && rest[1] === "-") return undefined;
    return rest.length === 1 ? refusedFile(rest[0] ?? "", folder) : "only one file can be checked at a time";
  }
  if (first === MOCHA) {
    const [reporter, form, ...files] = rest;
    if (reporter !== "--reporter" || form !== "json" || files.length === 0)
      return "mocha is run with --reporter json and files";
    return firstRefused(files, folder);
  }
  const files = REPORTERS.has(first) ? rest : [first, ...rest];
  if (files.length !== 1) return "node is run with exactly one file of the tree";
  return firstRefused(files, folder);
}

function firstRefused(files: readonly string[], folder: string): string | undefined {
  return files.map((file) => refusedFile(file, folder)).find((reason) => reason !== undefined);
}

function refusedFile(file: string, folder: string): string | undefined {
  if (file === "" || file.startsWith("-")) return `"${file}" is no file of the tree`;
  try {
    const real = realpathSync(join(folder, file));
    return real.startsWith(realpathSync(folder) + sep) ? undefined : `"${file}" leaves the work tree`;
  } catch {
    return `"${file}" does not exist`;
  }
}
