// The tests before anything is changed: the judge must be in order first, and what fails now is not blamed on the migration.
import { durableNode } from "langgraph-longhaul";
import { ensureDependencies, INSTALL_TIMEOUT_MS } from "./dependencies.js";
import { workTreeOf } from "./migration.js";
import { isRefusal, type Refusal, refuse } from "./outcome.js";
import { MigrationState } from "./state.js";
import { planSuite } from "./suite/planSuite.js";
import type { TestReport } from "./suite/report.js";
import { runSuite, suiteTimeoutMs } from "./suite/runSuite.js";

export const baseline = durableNode(MigrationState, async ({ base }, runtime) => {
  const { step } = runtime;
  const tree = workTreeOf(runtime);
  const suite = await step.read("plan-suite", { base }, async () => planSuite(await tree.sourceTree(base)));
  if (isRefusal(suite)) return { outcome: suite };
  const refused = await step.read(
    "install-dependencies",
    { install: suite.install },
    async ({ signal }) => (await ensureDependencies(tree, suite.install, signal)) ?? null,
    { timeoutMs: INSTALL_TIMEOUT_MS + 10_000 },
  );
  if (refused !== null) return { suite, outcome: refused };
  const testsBefore = await step.read(
    "run-tests",
    { revision: base, files: suite.files },
    ({ signal }) => runSuite(tree, base, suite, signal),
    { timeoutMs: suiteTimeoutMs(suite) },
  );
  const bad = judgeBaseline(testsBefore);
  return bad === undefined ? { suite, testsBefore } : { suite, testsBefore, outcome: bad };
});

function judgeBaseline({ passed, failed, hung, failures }: TestReport): Refusal | undefined {
  if (hung.length > 0)
    return refuse("tests-hang", `Before the migration its tests do not end: ${hung.join(", ")} had to be stopped.`);
  if (failed > 0) {
    const [first] = failures;
    return refuse(
      "tests-fail-before",
      `Before the migration ${failed} of its tests fail already and ${passed} pass, so they cannot judge it. ${first?.path}: ${lastLines(first?.output ?? "")}`,
    );
  }
  return passed === 0 ? refuse("no-tests", "Its test files hold no test that says whether it passed.") : undefined;
}

/** The end of what was said, without the places in code. */
function lastLines(output: string): string {
  const lines = output.split("\n").filter((line) => !/^\s*(at .*|Node\.js v.*)?$/.test(line));
  return lines.slice(-6).join(" | ").slice(0, 600);
}
