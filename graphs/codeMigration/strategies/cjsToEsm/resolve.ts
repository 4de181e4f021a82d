// What a specifier in a file means, and how an ES module must write it: with the file's whole name.
import { isBuiltin } from "node:module";
import { posix } from "node:path";
import type { ImportFact } from "../../strategy.js";

export interface Package {
  readonly paths: ReadonlySet<string>;
  /** The file that the package's own folder stands for. */
  readonly main: string | undefined;
  readonly name: string | undefined;
}

export function packageOf(
  paths: readonly string[],
  manifest: { readonly main?: unknown; readonly name?: unknown },
): Package {
  const all = new Set(paths);
  const named =
    typeof manifest.main === "string" ? posix.normalize(manifest.main).replace(/^\.\//, "").replace(/\/$/, "") : "";
  const main = fileAt(named, all) ?? fileAt("index", all);
  return { paths: all, main, name: typeof manifest.name === "string" ? manifest.name : undefined };
}

/** By Node's rules for `require`: the file, with .js or .json, or the folder's index. */
function fileAt(path: string, paths: ReadonlySet<string>): string | undefined {
  if (path === "" || path === ".") return undefined;
  return [path, `${path}.js`, `${path}.json`, `${path}/index.js`].find((candidate) => paths.has(candidate));
}

export function factOf(from: string, specifier: string, { paths, main, name }: Package): ImportFact {
  const unchanged: ImportFact = { specifier, target: specifier, path: undefined };
  const keeps: ImportFact = { specifier, target: undefined, path: undefined };
  if (specifier === name && main !== undefined) return local(from, specifier, main);
  if (!/^\.{1,2}(\/|$)/.test(specifier)) {
    if (isBuiltin(specifier)) return unchanged;
    return specifier.startsWith("/") || specifier.endsWith(".json") ? keeps : unchanged;
  }
  const path = posix.normalize(posix.join(posix.dirname(from), specifier)).replace(/\/$/, "");
  if (path.startsWith("..")) return keeps;
  const found = path === "." ? (main ?? fileAt("index", paths)) : fileAt(path, paths);
  return found === undefined || !/\.m?js$/.test(found) ? keeps : local(from, specifier, found);
}

function local(from: string, specifier: string, path: string): ImportFact {
  const relative = posix.relative(posix.dirname(from), path);
  return { specifier, target: relative.startsWith(".") ? relative : `./${relative}`, path };
}

/** What a file imports comes before it. Files that import each other come in the order of their names. */
export function inDependencyOrder<T extends { readonly path: string; readonly imports: readonly ImportFact[] }>(
  files: readonly T[],
): T[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const ordered: T[] = [];
  const seen = new Set<string>();
  const visit = (file: T): void => {
    if (seen.has(file.path)) return;
    seen.add(file.path);
    for (const { path } of file.imports) {
      const dependency = path === undefined ? undefined : byPath.get(path);
      if (dependency) visit(dependency);
    }
    ordered.push(file);
  };
  for (const file of files) visit(file);
  return ordered;
}
