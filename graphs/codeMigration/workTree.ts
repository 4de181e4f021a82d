// The work tree of one migration, kept as git objects. An edit becomes part of it in one atomic move of a branch, so that a
// kill leaves it whole: either the commit is in the history, with its step's key, or nothing is.
import { createHash, randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { atMost } from "../research/atMost.js";
import { NotApplied } from "./diskFull.js";
import { GitError, git, gitLine } from "./git.js";
import type { TreeEntry } from "./insideTree.js";
import { readSettings } from "./settings.js";
import type { SourceTree } from "./strategy.js";

export const BASE_BRANCH = "main";
const KEY_TRAILER = "Longhaul-Step";
/** How often another commit may be first before something else must be wrong. */
const MAX_RACES = 50;

/** The folder of a thread: readable, and never two threads in one. */
export function migrationName(threadId: string): string {
  const readable = threadId
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, 60);
  return `${readable || "thread"}-${createHash("sha256").update(threadId).digest("hex").slice(0, 8)}`;
}

export class WorkTree {
  /** Holds the repository, what the tests need, and folders of test runs. */
  readonly root: string;
  readonly repository: string;
  readonly branch: string;

  constructor(
    readonly name: string,
    strategyName: string,
    directory = readSettings().directory,
  ) {
    this.root = join(directory, name);
    this.repository = join(this.root, "tree");
    this.branch = `migrate/${strategyName}`;
  }

  head(): Promise<string> {
    return gitLine(this.repository, ["rev-parse", "--verify", `refs/heads/${this.branch}`]);
  }

  treeOf(revision: string): Promise<string> {
    return gitLine(this.repository, ["rev-parse", "--verify", `${revision}^{tree}`]);
  }

  async entries(revision: string): Promise<TreeEntry[]> {
    const listing = await git(this.repository, ["ls-tree", "-r", "-z", revision]);
    return listing
      .split("\0")
      .filter(Boolean)
      .map((line) => {
        const [about = "", path = ""] = line.split("\t");
        return { path, mode: about.slice(0, 6) };
      });
  }

  read(revision: string, path: string): Promise<string> {
    return git(this.repository, ["cat-file", "blob", `${revision}:${path}`]);
  }

  async sourceTree(revision: string): Promise<SourceTree> {
    const entries = await this.entries(revision);
    return {
      paths: entries.filter(({ mode }) => mode.startsWith("100")).map(({ path }) => path),
      links: entries.filter(({ mode }) => !mode.startsWith("100")).map(({ path }) => path),
      read: (path) => this.read(revision, path),
    };
  }

  /** The commits that bear a step's key: none, or one. */
  async commitsOf(key: string): Promise<string[]> {
    const range = `refs/heads/${this.branch}`;
    const found = await git(this.repository, [
      "log",
      "--format=%H",
      "--fixed-strings",
      `--grep=${KEY_TRAILER}: ${key}`,
      range,
    ]);
    return found.split("\n").filter(Boolean);
  }

  /** The step keys of all commits since the base, newest first. */
  async keysSince(base: string): Promise<string[]> {
    const range = `${base}..refs/heads/${this.branch}`;
    const found = await git(this.repository, ["log", `--format=%(trailers:key=${KEY_TRAILER},valueonly)`, range]);
    return found.split("\n").filter(Boolean);
  }

  /**
   * Commits one file once: a key that is in the history already gives its commit.
   * @throws NotApplied where nothing happened.
   */
  async commit(change: Change, key: string): Promise<string> {
    return await inTurn(this.root)(async () => {
      for (let race = 0; race < MAX_RACES; race++) {
        const { head, made } = await this.#prepare(change, key).catch((error: unknown) => {
          throw new NotApplied(error, this.root);
        });
        if ("known" in made) return made.known;
        // From here on the outcome may be unknown.
        if (await this.#move(made.commit, head)) return made.commit;
      }
      throw new NotApplied(new Error(`The branch ${this.branch} of ${this.repository} keeps moving.`), this.root);
    });
  }

  async #prepare(change: Change, key: string): Promise<{ head: string; made: { known: string } | { commit: string } }> {
    const head = await this.head();
    const [known] = await this.commitsOf(key);
    if (known !== undefined) return { head, made: { known } };
    const message = `${change.message}\n\n${KEY_TRAILER}: ${key}\n`;
    const tree = await this.#treeWith(head, change);
    return {
      head,
      made: { commit: await gitLine(this.repository, ["commit-tree", tree, "-p", head], { input: message }) },
    };
  }

  async #treeWith(head: string, { path, text, mode }: Change): Promise<string> {
    const index = join(this.root, `.index-${randomBytes(6).toString("hex")}`);
    try {
      await git(this.repository, ["read-tree", head], { index });
      if (text === undefined) await git(this.repository, ["update-index", "--force-remove", "--", path], { index });
      else {
        const blob = await gitLine(this.repository, ["hash-object", "-w", "--stdin"], { input: text });
        await git(this.repository, ["update-index", "--add", "--cacheinfo", `${mode ?? "100644"},${blob},${path}`], {
          index,
        });
      }
      return await gitLine(this.repository, ["write-tree"], { index });
    } finally {
      await rm(index, { force: true });
    }
  }

  /** Compare and set; false where another commit was first. */
  async #move(commit: string, from: string): Promise<boolean> {
    try {
      await git(this.repository, ["update-ref", `refs/heads/${this.branch}`, commit, from]);
      return true;
    } catch (error) {
      if (error instanceof GitError && /is at [0-9a-f]+ but expected|cannot lock ref/.test(error.message)) {
        if (!/unable to (create|write)|No space/i.test(error.message)) return false;
      }
      throw error;
    }
  }

  /** The files of a revision in a fresh folder, gone when `use` is done: tests may write what they like. */
  async withFiles<T>(revision: string, use: (folder: string) => Promise<T>): Promise<T> {
    const runs = join(this.root, "runs");
    const folder = join(runs, randomBytes(6).toString("hex"));
    const index = `${folder}.index`;
    try {
      await mkdir(folder, { recursive: true });
      await git(this.repository, ["read-tree", revision], { index });
      await git(this.repository, ["checkout-index", "--all", `--prefix=${folder}/`], { index });
      return await use(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await rm(index, { force: true });
    }
  }
}

export interface Change {
  readonly path: string;
  /** Undefined removes the file. */
  readonly text: string | undefined;
  /** Git's mode. @default "100644" */
  readonly mode?: string;
  readonly message: string;
}

const turns = new Map<string, ReturnType<typeof atMost>>();

/** One commit at a time in this process; between processes the branch's compare-and-set decides. */
function inTurn(root: string): ReturnType<typeof atMost> {
  const turn = turns.get(root) ?? atMost(1);
  turns.set(root, turn);
  return turn;
}
