// Which files are edited, in which order, and what each must become; then one batch after the other.
import { Send } from "@langchain/langgraph";
import { durableNode } from "langgraph-longhaul";
import { ensureDependencies, packageFile } from "./dependencies.js";
import { workTreeOf } from "./migration.js";
import { type FileInput, MigrationState } from "./state.js";
import { type PlannedFile, strategy } from "./strategy.js";

/** Files that are edited at once: enough to keep a model busy, few enough to lose little in a crash. */
const BATCH_FILES = 6;

export const plan = durableNode(MigrationState, async ({ base, suite }, runtime) => {
  const tree = workTreeOf(runtime);
  const { files } = await runtime.step.read("plan", { base }, async ({ signal }) => {
    await ensureDependencies(tree, suite.install, signal);
    return strategy.plan({
      ...(await tree.sourceTree(base)),
      packageFile: (specifier) => packageFile(tree, specifier),
    });
  });
  return { files: [...files], batches: batchesOf(files), batch: 0 };
});

/** Cut from the order of work, so that what a file imports is in its batch or an earlier one. */
export function batchesOf(files: readonly PlannedFile[]): string[][] {
  const batches: string[][] = [];
  for (let at = 0; at < files.length; at += BATCH_FILES)
    batches.push(files.slice(at, at + BATCH_FILES).map(({ path }) => path));
  return batches;
}

/** The next batch; after the last one package.json, and after a repair the tests. */
export function sendBatch(state: MigrationState): Send[] | "edit manifest" | "run tests" {
  if (state.repairs !== undefined) return "run tests";
  const paths = state.batches[state.batch] ?? [];
  return paths.length === 0 ? "edit manifest" : paths.map((path) => sendFile(state, path, state.base, ""));
}

export function sendFile({ subject, files }: MigrationState, path: string, revision: string, errors: string): Send {
  const file = files.find((planned) => planned.path === path);
  if (file === undefined) throw new Error(`"${path}" is not in the plan.`);
  return new Send("edit file", { subject, file, files, revision, errors } satisfies typeof FileInput.State);
}

/** Between two batches. */
export function nextBatch({ batch }: MigrationState): { batch: number } {
  return { batch: batch + 1 };
}
