// package.json of an ES module package: `type`, and `exports` that leave every former way in open.

import type { PlannedFile } from "../../strategy.js";
import { detectIndent } from "./indent.js";
import { packageOf } from "./resolve.js";

const NOT_PUBLIC =
  /^(test|tests|__tests__|spec|example|examples|bench|benchmark|benchmarks|scripts|tools)\/|(^|\/)(test|tests)\.js$|[.-](test|spec)\.js$|(^|\/)\.|^(gulp|grunt|karma|webpack|rollup)/i;

export function esmManifest(text: string, files: readonly PlannedFile[]): string {
  const manifest = JSON.parse(text) as Record<string, unknown>;
  const paths = files.map(({ path }) => path);
  const { main } = packageOf(paths, manifest);
  const open = manifest["exports"] === undefined ? { exports: exportsMap(main, paths) } : {};
  const { main: _, ...rest } = manifest;
  const entry = main === undefined ? {} : { main: `./${main}` };
  const changed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries("main" in manifest ? manifest : { ...rest, ...entry })) {
    changed[name] = name === "main" && main !== undefined ? `./${main}` : value;
    if (name === "version") changed["type"] = "module";
    if (name === "main") Object.assign(changed, open);
  }
  const result = { ...changed, type: "module", ...open };
  return `${JSON.stringify(result, null, detectIndent(text))}${text.endsWith("\n") ? "\n" : ""}`;
}

function exportsMap(main: string | undefined, paths: readonly string[]): Record<string, string> {
  const map: Record<string, string> = main === undefined ? {} : { ".": `./${main}` };
  for (const path of [...paths].sort()) {
    if (NOT_PUBLIC.test(path)) continue;
    const name = path.replace(/\.js$/, "");
    map[`./${path}`] = `./${path}`;
    map[`./${name}`] = `./${path}`;
    if (name.endsWith("/index")) map[`./${name.slice(0, -"/index".length)}`] = `./${path}`;
  }
  return { ...map, "./package.json": "./package.json" };
}
