// The repository's TypeScript as JavaScript in a folder of its own, for the many processes that tests start: each of
// them would compile it again. Imports end in ".js" already, so every file is translated by itself.
import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["src", "test"];
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
};

/** Returns the folder, which must not exist yet. */
export async function compileScripts(folder: string): Promise<string> {
  for (const name of FOLDERS) {
    for (const file of await readdir(join(ROOT, name), { recursive: true })) {
      if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
      const text = await readFile(join(ROOT, name, file), "utf8");
      const target = join(folder, name, file.replace(/ts$/, "js"));
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, ts.transpileModule(text, { compilerOptions: OPTIONS }).outputText);
    }
  }
  await cp(join(ROOT, "src/postgres/sql"), join(folder, "src/postgres/sql"), { recursive: true });
  await cp(join(ROOT, "package.json"), join(folder, "package.json"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}
