// Whether a path that somebody else named is one of the work tree's. The tree is git's, so that a path is checked against
// what it holds, never against a file system that may change in between.

export interface TreeEntry {
  readonly path: string;
  /** Git's mode: 100644, 100755, 120000 for a symbolic link, 160000 for a submodule. */
  readonly mode: string;
}

const LINK = "120000";
const SUBMODULE = "160000";
const MAX_PATH_CHARS = 1_000;

/** @returns why the path is refused, or undefined. */
export function leavesTree(path: string, entries: readonly TreeEntry[]): string | undefined {
  if (path === "" || path.length > MAX_PATH_CHARS) return "it is empty or too long";
  for (const char of path) if (char.charCodeAt(0) < 0x20) return "it holds control characters";
  if (path.startsWith("/") || path.startsWith("~") || /^[a-z]:/i.test(path)) return "it is absolute";
  if (path.includes("\\")) return "it holds a backslash";
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return 'it has an empty part, "." or ".."';
  // Git's own list: what some file system takes for .git is .git.
  if (parts.some((part) => /^(\.git|git~\d+)[ .]*(:.*)?$/i.test(part))) return "it is in git's own folder";
  if (parts[0] === "node_modules") return "it is in node_modules";
  for (const entry of entries) {
    if (entry.mode !== LINK && entry.mode !== SUBMODULE) continue;
    if (path === entry.path || path.startsWith(`${entry.path}/`))
      return `"${entry.path}" is a symbolic link or a submodule`;
  }
  return undefined;
}
