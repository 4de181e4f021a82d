// Where the server's files live, and which user they belong to.
// Rule: PostgreSQL refuses to run as root, so for root everything the server touches must be
// reachable by uid 65534; folders of root's own that it cannot reach are never opened up for it.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, chmod, constants, lstat, mkdir, realpath, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

/** The user that the server runs as when the caller is root. */
export interface Owner {
  uid: number;
  gid: number;
}

/** The folders of one server. */
export interface Home {
  /** Holds the data folder, the server's log and the start lock. */
  folder: string;
  /** The PostgreSQL data folder. */
  dataDir: string;
  /** Where a copy of the binaries goes when the installed ones cannot be used in place. */
  binariesFolder: string;
  /** Set when the caller is root. */
  owner: Owner | undefined;
}

/** `nobody` on today's Linux distributions: it owns nothing else. */
const nobody: Owner = { uid: 65534, gid: 65534 };

/**
 * Finds and creates the folder for the server's files.
 *
 * @throws Error when the cache folder for root belongs to, or can be written by, another user.
 */
export async function findHome(requested: string | undefined, cwd: string): Promise<Home> {
  if (process.getuid?.() !== 0) {
    const wanted = requested === undefined ? await projectHome(cwd) : resolve(cwd, requested);
    await mkdir(wanted, { recursive: true, mode: 0o700 });
    const folder = await realpath(wanted);
    return { folder, dataDir: join(folder, "postgres"), binariesFolder: folder, owner: undefined };
  }
  const cache = await cacheFolder();
  const wanted = resolve(cwd, requested ?? projectFolder(cwd));
  const created =
    requested !== undefined && (await canReach(nobody, wanted)) ? wanted : join(cache, await cacheName(wanted));
  const first = await mkdir(created, { recursive: true });
  // Past root's umask: uid 65534 must pass through the new folders, and needs no more than that.
  for (let made = created; first !== undefined && made.startsWith(first); made = dirname(made)) {
    await chmod(made, 0o711);
  }
  const folder = await realpath(created);
  return { folder, dataDir: join(folder, "postgres"), binariesFolder: cache, owner: nobody };
}

/** The nearest folder upwards that has a package.json, else `cwd` itself. */
function projectFolder(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) {
      return folder;
    }
    if (folder === dirname(folder)) {
      return cwd;
    }
  }
}

async function projectHome(cwd: string): Promise<string> {
  const folder = join(projectFolder(cwd), ".longhaul");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // A database and its password must not end up in a commit.
  await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" }).catch(() => undefined);
  return folder;
}

/** One name a folder, with its own name in front so that a person finds it in the cache. */
async function cacheName(folder: string): Promise<string> {
  const real = await realpath(folder).catch(() => folder);
  const hash = createHash("sha256").update(real).digest("hex").slice(0, 16);
  return `${basename(real).replace(/[^\w.-]/g, "_")}-${hash}`;
}

async function cacheFolder(): Promise<string> {
  const parent = await access("/var/cache", constants.W_OK).then(
    () => "/var/cache",
    () => tmpdir(),
  );
  const folder = join(parent, "langgraph-longhaul");
  await mkdir(folder).then(
    () => chmod(folder, 0o755),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );
  // In /tmp anybody may have made it first; root must not run binaries that they can replace.
  const { uid, mode } = await lstat(folder);
  if (uid !== 0 || (mode & 0o170022) !== 0o040000) {
    throw new Error(
      `${folder} must be a folder of root that nobody else can write. Remove it, or set LONGHAUL_DATABASE_URL.`,
    );
  }
  return folder;
}

/** Whether the mode bits let `user` through every existing folder on the way to `path`. */
async function canReach(user: Owner, path: string): Promise<boolean> {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found !== undefined) {
      const bit = found.uid === user.uid ? 0o100 : found.gid === user.gid ? 0o010 : 0o001;
      if ((found.mode & bit) === 0) {
        return false;
      }
    }
    if (folder === dirname(folder)) {
      return true;
    }
  }
}
