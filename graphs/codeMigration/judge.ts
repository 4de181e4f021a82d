// The package's own tests decide. What fails goes back to the files that it names, at most so often; what passes goes to a person.
import { Command, END } from "@langchain/langgraph";
import { durableNode } from "langgraph-longhaul";
import { ensureDependencies } from "./dependencies.js";
import { workTreeOf } from "./migration.js";
import { sendFile } from "./plan.js";
import { type Complaint, MigrationState } from "./state.js";
import type { PlannedFile } from "./strategy.js";
import type { TestReport } from "./suite/report.js";
import { runSuite, suiteTimeoutMs } from "./suite/runSuite.js";

/** Rounds of repair. What three rounds with the very error message did not mend needs a person. */
export const MAX_REPAIRS = 3;
/** Files that are repaired at once. */
const MAX_COMPLAINTS = 6;
const MAX_ERROR_CHARS = 4_000;

export const judge = durableNode(MigrationState, async (state, runtime) => {
  const { step } = runtime;
  const { suite, testsBefore, repairs, files } = state;
  const tree = workTreeOf(runtime);
  const { head, hash } = await step.read("head", { repairs }, async () => {
    const found = await tree.head();
    return { head: found, hash: await tree.treeOf(found) };
  });
  const testsAfter = await step.read(
    "run-tests",
    { revision: head, files: suite.files },
    async ({ signal }) => {
      await ensureDependencies(tree, suite.install, signal);
      return runSuite(tree, head, suite, signal);
    },
    { timeoutMs: suiteTimeoutMs(suite) },
  );
  const judged = { testsAfter, head, tree: hash };
  if (asGoodAs(testsAfter, testsBefore)) return new Command({ update: judged, goto: "approve" });
  const complaints = complaintsOf(testsAfter, files);
  const stuck = repairs > 0 && head === state.head;
  if (repairs >= MAX_REPAIRS || complaints.length === 0 || stuck) {
    const after = stuck ? "the last repair changed nothing" : `${repairs} rounds of repair`;
    const message = `After the migration ${testsAfter.failed} of its tests fail, ${testsAfter.passed} of ${testsBefore.passed} pass (${after}). The branch is in ${tree.repository}.`;
    return new Command({ update: { ...judged, outcome: { status: "gave-up" as const, message } }, goto: END });
  }
  const sends = complaints.map(({ path, errors }) => sendFile(state, path, head, errors));
  return new Command({ update: { ...judged, complaints, repairs: repairs + 1 }, goto: sends });
});

/** A test that is no longer run is no test that passes. */
function asGoodAs(after: TestReport, before: TestReport): boolean {
  return after.failed === 0 && after.hung.length === 0 && after.passed >= before.passed;
}

/** Each failing test's output goes to the file that it names first, or to the test's own. */
export function complaintsOf({ failures }: TestReport, files: readonly PlannedFile[]): Complaint[] {
  const paths = new Set(files.map(({ path }) => path));
  const byPath = new Map<string, string>();
  for (const { path, output } of failures) {
    const named = [...output.matchAll(/file:\/\/\/?([^\s:()'"]+)/g)].map(([, name = ""]) => name.replace(/^\/+/, ""));
    const blamed = named.find((name) => paths.has(name)) ?? path;
    if (!paths.has(blamed)) continue;
    const errors = [byPath.get(blamed), output].filter(Boolean).join("\n");
    byPath.set(blamed, errors.slice(0, MAX_ERROR_CHARS));
  }
  return [...byPath].slice(0, MAX_COMPLAINTS).map(([path, errors]) => ({ path, errors }));
}
