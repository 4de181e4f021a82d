// Somebody's own git repository: only ever read, and only where what is committed is what they see.
import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { GitError, git, gitLine } from "../git.js";
import { type Refusal, refuse } from "../outcome.js";

export interface RepositorySource {
  readonly kind: "repository";
  readonly path: string;
  readonly commit: string;
}

export async function readRepository(path: string): Promise<RepositorySource | Refusal> {
  if (!isAbsolute(path)) return refuse("bad-input", `Expected the absolute path of a git repository, got "${path}".`);
  const found = await stat(path).catch(() => undefined);
  if (!found?.isDirectory()) return refuse("not-found", `There is no folder "${path}".`);
  try {
    const top = await gitLine(path, ["rev-parse", "--show-prefix"]);
    if (top !== "")
      return refuse("bad-input", `"${path}" is a folder in a git repository. Name the repository's own folder.`);
    const changes = await git(path, ["status", "--porcelain", "--untracked-files=normal"]);
    if (changes.trim() !== "") {
      const files = changes.trim().split("\n").length;
      return refuse(
        "dirty-work-tree",
        `"${path}" has ${files} change${files === 1 ? "" : "s"} that ${files === 1 ? "is" : "are"} not committed. Commit or stash them: the migration starts from a commit.`,
      );
    }
    return { kind: "repository", path, commit: await gitLine(path, ["rev-parse", "--verify", "HEAD^{commit}"]) };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return refuse("bad-input", `"${path}" is no git repository with a commit.`);
  }
}

/** Brings one commit's files into the repository at `folder`. */
export async function fetchCommit({ path, commit }: RepositorySource, folder: string): Promise<void> {
  await git(folder, ["fetch", "--quiet", "--no-tags", "--depth=1", `file://${path}`, commit]);
  await git(folder, ["read-tree", commit]);
}
