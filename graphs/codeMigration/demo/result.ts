// The end of the demo: what was measured, whether it is what was promised, and how it is shown. What was done twice is counted
// in the world, not in the ledger: requests at the model, and commits in the history.
import Table from "cli-table3";
import { audit, type Kill } from "../../research/demo/audit.js";
import type { Receipt } from "../../research/demo/receipts.js";
import type { RequestLog } from "../../research/world/requestLog.js";
import { strategy } from "../strategy.js";
import { migrationName, WorkTree } from "../workTree.js";
import type { Finished, Tests } from "./messages.js";

/** The last line of `--json` where the migration was delivered. */
export interface DemoResult {
  readonly event: "done";
  readonly package: string;
  readonly files: number;
  readonly commits: number;
  readonly kills: number;
  readonly testsBefore: Tests | null;
  readonly testsAfter: Tests | null;
  readonly tree: string | null;
  readonly duplicates: number;
  readonly costUsd: number;
  readonly patch: string | null;
}

/** The last line of `--json` where it was not. */
export interface DemoRefusal {
  readonly event: "refused" | "gave-up" | "rejected";
  readonly package: string;
  readonly reason: string;
  readonly message: string;
  readonly kills: number;
  readonly testsBefore: Tests | null;
  readonly testsAfter: Tests | null;
  readonly duplicates: number;
}

export interface Measured {
  readonly threadId: string;
  readonly wanted: string;
  readonly finished: Finished;
  readonly log: RequestLog;
  readonly receipts: readonly Receipt[];
  readonly kills: readonly Kill[];
  readonly startedAt: Date;
}

const NANO = 1e9;

export async function measure(measured: Measured): Promise<DemoResult | DemoRefusal> {
  const { threadId, wanted, finished, log, receipts, kills, startedAt } = measured;
  const { outcome, testsBefore, testsAfter } = finished;
  const keys = finished.base === null ? [] : await commitKeys(threadId, finished.base);
  const models = audit({ requests: log.requests, receipts, kills, startedAt }).duplicates.models;
  const duplicates = models + duplicateCommits(keys, receipts);
  const name = finished.subject ?? wanted;
  if (outcome.status !== "delivered") {
    const reason = outcome.status === "refused" ? outcome.reason : outcome.status;
    const { status: event, message } = outcome;
    return { event, package: name, reason, message, kills: kills.length, testsBefore, testsAfter, duplicates };
  }
  return {
    event: "done",
    package: name,
    files: finished.files,
    commits: keys.length,
    kills: kills.length,
    testsBefore,
    testsAfter,
    tree: finished.tree,
    duplicates,
    costUsd: Number(receipts.reduce((sum, receipt) => sum + receipt.costNanoUsd, 0n)) / NANO,
    patch: finished.patch,
  };
}

async function commitKeys(threadId: string, base: string): Promise<string[]> {
  return await new WorkTree(migrationName(threadId), strategy.name).keysSince(base);
}

/** Commits beyond one for each receipt: the same step twice, or one that no receipt stands for. */
function duplicateCommits(keys: readonly string[], receipts: readonly Receipt[]): number {
  const recorded = new Set(receipts.filter(({ name }) => name === "apply-edit").map(({ key }) => key));
  return keys.length - new Set(keys.filter((key) => recorded.has(key))).size;
}

/** What of the promise was not kept; empty when all was. */
export function brokenPromises(result: DemoResult | DemoRefusal): string[] {
  const broken: string[] = [];
  if (result.duplicates > 0) broken.push(`${result.duplicates} effects happened twice although they were on record.`);
  if (result.event !== "done") return broken;
  const { testsBefore, testsAfter } = result;
  if (testsAfter === null || testsAfter.failed > 0 || testsAfter.passed < (testsBefore?.passed ?? 0))
    broken.push("It was delivered although its tests do not pass.");
  return broken;
}

/** The table at the end. */
export function renderResult(result: DemoResult | DemoRefusal, finished: Finished, standIn: boolean): string {
  const table = new Table({ style: { head: [], border: [] }, wordWrap: true, colWidths: [16, 100] });
  const tests = (counts: Tests | null): string =>
    counts === null ? "not run" : `${counts.passed} passed, ${counts.failed} failed`;
  table.push({ Package: result.package }, { Killed: result.kills > 0 ? "once with SIGKILL" : "no" });
  if (result.event !== "done") {
    table.push({ [result.event]: result.message }, { "Tests before": tests(result.testsBefore) });
    return table.toString();
  }
  table.push(
    { Edited: `${result.files} files in ${result.commits} commits, ${finished.repairs} rounds of repair` },
    { "Done twice": result.duplicates === 0 ? "nothing" : String(result.duplicates) },
    { "Tests before": tests(result.testsBefore) },
    { "Tests after": tests(result.testsAfter) },
    { Tree: result.tree ?? "" },
    { Cost: `$${result.costUsd.toFixed(4)}${standIn ? " at the model's list price; nothing was spent" : ""}` },
    { Patch: result.patch ?? "" },
    ...(finished.pullRequest === null ? [] : [{ "Pull request": finished.pullRequest }]),
  );
  return table.toString();
}
