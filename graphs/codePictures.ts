// Pictures of the pack itself, drawn from its code: the states of a step from the transition table, the layers from what the
// folders of src import of each other.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isFinal, mayTransition, STATES } from "../src/core/step.js";

/** The one transition table, as a state diagram. */
export function drawStates(): string {
  const lines = STATES.flatMap((from) =>
    STATES.filter((to) => mayTransition(from, to)).map((to) => `  ${from} --> ${to}`),
  );
  const first = STATES.filter((to) => mayTransition(null, to)).map((to) => `  [*] --> ${to}`);
  const last = STATES.filter((state) => isFinal(state)).map((state) => `  class ${state} final`);
  return ["stateDiagram-v2", ...first, ...lines, "  classDef final fill:#d7f0d9", ...last].join("\n");
}

const SRC = fileURLToPath(new URL("../src/", import.meta.url));

/** Each folder of src, and the folders that it imports; what one of those imports itself is left out. */
export function drawLayers(): string {
  const layers = importsByFolder();
  const beyond = (folder: string, seen = new Set<string>()): Set<string> => {
    for (const next of layers.get(folder) ?? []) if (!seen.has(next)) beyond(next, seen.add(next));
    return seen;
  };
  const lines = [...layers].flatMap(([folder, imported]) => {
    const direct = [...imported].filter(
      (one) => ![...imported].some((other) => other !== one && beyond(other).has(one)),
    );
    return direct.map((one) => `  ${folder} --> ${one}`);
  });
  return ["flowchart TD", ...lines.sort()].join("\n");
}

/** What stands directly in src is one layer: where the ledger is opened. */
const TOP = "openLedger";

function importsByFolder(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const entry of readdirSync(SRC, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".ts") || entry.name === "index.ts") continue;
    const file = resolve(entry.parentPath, entry.name);
    const folder = folderOf(file);
    const imported = found.get(folder) ?? new Set<string>();
    found.set(folder, imported);
    for (const [, target = ""] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)"/g)) {
      const other = folderOf(resolve(dirname(file), target));
      if (other !== folder) imported.add(other);
    }
  }
  return new Map([...found].sort(([a], [b]) => a.localeCompare(b)));
}

function folderOf(file: string): string {
  const [first = "", ...rest] = relative(SRC, file).split("/");
  return rest.length === 0 ? TOP : first;
}
