// Runs a package's tests on one revision: its files in a fresh folder, each test file in a sandboxed process of its own.
import { availableParallelism } from "node:os";
import { atMost } from "../../research/atMost.js";
import { MOCHA } from "../sandbox/allowed.js";
import type { CommandResult } from "../sandbox/runCommand.js";
import { runSandboxed } from "../sandbox/sandbox.js";
import { readSettings } from "../settings.js";
import type { WorkTree } from "../workTree.js";
import type { FailedFile, SuitePlan, TestReport } from "./report.js";
import { type Counts, countTap } from "./tap.js";

/** The end of an output is where its error is; a prompt and a person need no more. */
const OUTPUT_CHARS = 4_000;
const FILES_AT_ONCE = Math.max(1, Math.min(4, availableParallelism()));
/** One file that hangs says enough: a suite of fifty that all hang should not take fifty times as long. */
const HUNG_FILES_ARE_ENOUGH = 2;

/** What a suite may take at most, from its files and the time of one. */
export function suiteTimeoutMs(plan: SuitePlan): number {
  return Math.min(plan.files.length + 1, 30) * readSettings().testTimeoutMs + 60_000;
}

export async function runSuite(
  tree: WorkTree,
  revision: string,
  plan: SuitePlan,
  signal: AbortSignal,
): Promise<TestReport> {
  return await tree.withFiles(revision, async (folder) => {
    const limit = atMost(FILES_AT_ONCE);
    let hung = 0;
    const results = await Promise.all(
      plan.files.map((path) =>
        limit(async () => {
          if (hung >= HUNG_FILES_ARE_ENOUGH)
            return { path, hung: false, counts: { passed: 0, failed: 0 }, output: undefined };
          const result = await runTest(folder, path, plan, signal);
          if (result.hung) hung += 1;
          return result;
        }),
      ),
    );
    return {
      passed: results.reduce((sum, { counts }) => sum + counts.passed, 0),
      failed: results.reduce((sum, { counts }) => sum + counts.failed, 0),
      hung: results.filter((result) => result.hung).map(({ path }) => path),
      failures: results.flatMap(({ path, output }): FailedFile[] => (output === undefined ? [] : [{ path, output }])),
    };
  });
}

interface FileResult {
  readonly path: string;
  readonly counts: Counts;
  readonly hung: boolean;
  /** Undefined: it passed. */
  readonly output: string | undefined;
}

async function runTest(folder: string, path: string, plan: SuitePlan, signal: AbortSignal): Promise<FileResult> {
  const result = await runSandboxed({
    argv: commandFor(path, plan),
    folder,
    timeoutMs: readSettings().testTimeoutMs,
    signal,
  });
  signal.throwIfAborted();
  const said = countsOf(result, plan);
  // A file that fails without a failed test died on its way.
  const died = result.code !== 0 && said.failed === 0;
  const counts = died ? { ...said, failed: 1 } : said;
  const output = counts.failed > 0 ? tellFailure(result, folder) : undefined;
  return { path, counts, hung: result.endedBy === "timeout", output };
}

function commandFor(path: string, { runner }: SuitePlan): string[] {
  if (runner === "mocha") return ["node", MOCHA, "--reporter", "json", path];
  if (runner === "node-test") return ["node", "--test-reporter=tap", path];
  return ["node", path];
}

function countsOf({ stdout, code }: CommandResult, { runner }: SuitePlan): Counts {
  if (runner === "plain") return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 };
  if (runner !== "mocha") return countTap(stdout);
  try {
    const { stats } = JSON.parse(stdout.slice(stdout.indexOf("{\n"))) as {
      stats: { passes: number; failures: number };
    };
    return { passed: stats.passes, failed: stats.failures };
  } catch {
    return { passed: 0, failed: 0 };
  }
}

/** The folder has another name each time: without it, equal failures read alike. */
function tellFailure({ stdout, stderr, endedBy }: CommandResult, folder: string): string {
  const ending = endedBy === undefined ? [] : [`It was ended by its ${endedBy} limit.`];
  const said = [stdout.trim(), stderr.trim(), ...ending].filter(Boolean).join("\n");
  return said.replaceAll(folder, "").slice(-OUTPUT_CHARS);
}
