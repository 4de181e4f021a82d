// The pack as users import it: `dist` when it is as new as the sources, else built into a folder that is gone
// afterwards. Benchmarks of the import must not time a compiler.
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

export interface BuiltPack {
  /** Where `node_modules` is found from. */
  readonly root: string;
  /** The address of a module, such as "index.js". */
  entry(module: string): string;
  remove(): Promise<void>;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export async function buildPack(): Promise<BuiltPack> {
  if (await isUpToDate(join(ROOT, "dist"), join(ROOT, "src"))) return packAt(join(ROOT, "dist"), async () => {});
  const folder = await mkdtemp(join(tmpdir(), "longhaul-bench-dist-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(ROOT, "tsconfig.build.json"), "--outDir", join(folder, "dist")];
  // Type errors are somebody else's business here: what was emitted counts.
  const failed = await promisify(execFile)(process.execPath, [compiler, ...options]).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!existsSync(join(folder, "dist/index.js"))) {
    await remove();
    throw new Error("The pack could not be built.", { cause: failed });
  }
  return packAt(join(folder, "dist"), remove);
}

function packAt(dist: string, remove: () => Promise<void>): BuiltPack {
  return { root: ROOT, entry: (module) => pathToFileURL(join(dist, module)).href, remove };
}

/** Every source has its module, and none is newer than it. */
async function isUpToDate(dist: string, src: string): Promise<boolean> {
  const names = (await readdir(src, { recursive: true })).filter((name) => name.endsWith(".ts"));
  return names.every((name) => {
    const built = join(dist, name.replace(/\.ts$/, ".js"));
    return existsSync(built) && statSync(built).mtimeMs >= statSync(join(src, name)).mtimeMs;
  });
}
