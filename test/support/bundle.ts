// A script of this repository and everything it imports as one file: a process of it starts in a fraction of the time,
// so that hundreds of them can be started and killed.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("../../", import.meta.url));

export interface Bundle {
  /** Where the one file is. */
  readonly file: string;
  remove(): Promise<void>;
}

/** Builds `path` (from the root of the repository) into a folder of its own. */
export async function bundle(path: string): Promise<Bundle> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-bundle-"));
  const name = "script.mjs";
  await build({
    configFile: false,
    root,
    logLevel: "error",
    ssr: { noExternal: true, external: ["pg-native"] },
    build: {
      ssr: join(root, path),
      outDir: folder,
      emptyOutDir: false,
      minify: false,
      target: "node20",
      rollupOptions: { output: { entryFileNames: name, codeSplitting: false } },
    },
  });
  // The migrations are read from beside the file that applies them.
  await cp(join(root, "src/postgres/sql"), join(folder, "sql"), { recursive: true });
  return { file: join(folder, name), remove: () => rm(folder, { recursive: true, force: true }) };
}
