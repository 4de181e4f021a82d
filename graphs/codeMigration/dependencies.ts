// What a package's tests need of the registry. Installing is a step of its own outside the sandbox, with the network and
// without anybody's install scripts; what was installed once serves every thread.
import { createHash, randomBytes } from "node:crypto";
import { access, mkdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Refusal, refuse } from "./outcome.js";
import { runCommand } from "./sandbox/runCommand.js";
import { readSettings } from "./settings.js";
import type { WorkTree } from "./workTree.js";

export const INSTALL_TIMEOUT_MS = 180_000;

/** Makes `node_modules` of the specs visible to the tree's files. @returns why it cannot be, or undefined. */
export async function ensureDependencies(
  tree: WorkTree,
  specs: readonly string[],
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const name = createHash("sha256").update(JSON.stringify(specs)).digest("hex").slice(0, 16);
  const folder = join(readSettings().cacheDirectory, "modules", name);
  if (!(await exists(folder))) {
    const refused = await install(folder, specs, signal);
    if (refused !== undefined) return refused;
  }
  const link = join(tree.root, "node_modules");
  await symlink(join(folder, "node_modules"), link).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    if (!(await exists(link))) {
      await rm(link, { force: true });
      await symlink(join(folder, "node_modules"), link);
    }
  });
  return undefined;
}

/** Complete or not there: the folder gets its name when all is in it. */
async function install(folder: string, specs: readonly string[], signal: AbortSignal): Promise<Refusal | undefined> {
  const making = `${folder}.${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(join(making, "node_modules"), { recursive: true });
    if (specs.length > 0) {
      const refused = await npmInstall(making, specs, signal);
      if (refused !== undefined) return refused;
    }
    await rename(making, folder).catch(async (error: unknown) => {
      if (!(await exists(folder))) throw error;
    });
    return undefined;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

async function npmInstall(making: string, specs: readonly string[], signal: AbortSignal): Promise<Refusal | undefined> {
  const dependencies = Object.fromEntries(
    specs.map((spec) => [spec.slice(0, spec.lastIndexOf("@")), spec.slice(spec.lastIndexOf("@") + 1)]),
  );
  await writeFile(join(making, "package.json"), JSON.stringify({ private: true, dependencies }));
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  const { code, stderr, endedBy } = await runCommand("npm", args, {
    cwd: making,
    env: process.env,
    timeoutMs: INSTALL_TIMEOUT_MS,
    signal,
  });
  if (endedBy === "cancel") signal.throwIfAborted();
  if (code !== 0) {
    const why =
      endedBy === undefined ? stderr.trim().split("\n").slice(0, 5).join(" ") : `it was ended by its ${endedBy} limit`;
    if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/.test(stderr))
      throw new Error(`npm install failed: ${why}`);
    return refuse("dependencies", `What its tests need cannot be installed (${specs.join(", ")}): ${why}`);
  }
  return undefined;
}

export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** The whole name of a file in an installed package that leaves its folder open, as `import` wants it. */
export async function packageFile(tree: WorkTree, specifier: string): Promise<string | undefined> {
  const parts = specifier.split("/");
  const name = parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  const inside = specifier.slice(name.length + 1);
  if (inside === "") return undefined;
  const folder = join(tree.root, "node_modules", name);
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8").catch(() => "{}")) as {
    exports?: unknown;
  };
  if (manifest.exports !== undefined) return undefined;
  for (const end of ["", ".js", "/index.js"]) {
    const found = await stat(join(folder, inside + end)).catch(() => undefined);
    if (found?.isFile()) return `${name}/${inside}${end}`;
  }
  return undefined;
}
