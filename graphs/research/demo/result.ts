// The end of the demo: what was measured, whether it is what was promised, and how it is shown.
import Table from "cli-table3";
import type { Publisher } from "../world/publisher.js";
import type { RequestLog } from "../world/requestLog.js";
import { type Audit, audit, type Counts, type Kill } from "./audit.js";
import type { Receipt } from "./receipts.js";

/** The last line of `--json`. */
export interface DemoResult {
  readonly event: "done";
  readonly threadId: string;
  readonly pages: number;
  readonly kills: number;
  readonly steps: number;
  readonly replayed: number;
  readonly costUsd: number;
  readonly world: { readonly pagesServed: number; readonly published: number; readonly modelRequests: number };
  readonly recorded: Counts;
  readonly inFlightAtKill: number;
  readonly duplicates: Counts;
  /** Null when the budget ended before there was one. */
  readonly report: string | null;
  /** Pages that the budget left unread, and how to go on; null when all is done. */
  readonly stopped: { readonly unread: number; readonly message: string } | null;
  /** What the database keeps of the thread, by page: steps, checkpoints, artifacts. Null without a page. */
  readonly dbBytesPerPage: number | null;
  readonly largestPromptTokens: number;
  /** The most that a worker had in memory, in MiB. */
  readonly rssMb: number;
}

export interface Measured {
  readonly threadId: string;
  readonly log: RequestLog;
  readonly publisher: Publisher;
  readonly receipts: readonly Receipt[];
  readonly kills: readonly Kill[];
  readonly startedAt: Date;
  readonly replayed: number;
  readonly report: string | undefined;
  readonly stopped: { readonly unread: number; readonly message: string } | undefined;
  /** What the database keeps of the thread. */
  readonly dbBytes: number;
  readonly rssMb: number;
}

const NANO = 1e9;

export async function measure({
  threadId,
  log,
  publisher,
  receipts,
  kills,
  startedAt,
  replayed,
  report,
  stopped,
  dbBytes,
  rssMb,
}: Measured): Promise<DemoResult> {
  const pages = receipts.filter((receipt) => receipt.name === "read_page").length;
  const found: Audit = audit({ requests: log.requests, receipts, kills, startedAt });
  return {
    event: "done",
    threadId,
    pages,
    kills: kills.length,
    steps: receipts.length,
    replayed,
    costUsd: Number(receipts.reduce((sum, receipt) => sum + receipt.costNanoUsd, 0n)) / NANO,
    world: {
      pagesServed: log.count("page"),
      published: await countPosts(publisher, receipts),
      modelRequests: log.count("model"),
    },
    recorded: found.recorded,
    inFlightAtKill: found.inFlightAtKill,
    duplicates: found.duplicates,
    report: report ?? null,
    stopped: stopped ?? null,
    dbBytesPerPage: pages === 0 ? null : Math.round(dbBytes / pages),
    largestPromptTokens: receipts.reduce(
      (most, { kind, inputTokens }) => (kind === "llm" ? Math.max(most, inputTokens) : most),
      0,
    ),
    rssMb,
  };
}

/** Posts that became new while we watched, and posts of this thread's receipts from an earlier run of the demo. */
async function countPosts(publisher: Publisher, receipts: readonly Receipt[]): Promise<number> {
  const keys = new Set(publisher.published);
  for (const { key, effect } of receipts) if (effect === "write" && (await publisher.find(key))) keys.add(key);
  return keys.size;
}

/** What of the promise was not kept; empty when all was. */
export function brokenPromises({ world, duplicates, recorded, stopped }: DemoResult): string[] {
  const broken: string[] = [];
  // A thread whose budget was raised has published what it had, and then all of it.
  if (world.published !== recorded.writes || (stopped === null && recorded.writes === 0))
    broken.push(`The report was published ${world.published} times.`);
  for (const [kind, count] of Object.entries(duplicates))
    if (count > 0) broken.push(`${count} ${kind} were done although their result was on record.`);
  return broken;
}

/** The table at the end. */
export function renderResult(result: DemoResult, killAt: number | undefined, standIn: boolean): string {
  const { kills, steps, replayed, recorded, inFlightAtKill, duplicates, world } = result;
  const table = new Table({ style: { head: [], border: [] } });
  const killed =
    kills > 0
      ? `once with SIGKILL, at its step ${killAt}`
      : killAt === undefined
        ? "no"
        : `no: the run had fewer steps than ${killAt}`;
  const again = Object.values(duplicates).some((count) => count > 0) ? describe(duplicates) : "nothing";
  table.push({ Killed: killed }, { "On record": `${plural(steps, "step")}: ${describe(recorded)}` });
  if (kills > 0) {
    table.push(
      { "Lost by the kill": `${plural(inFlightAtKill, "request")} that had no receipt yet; made again` },
      { "Recorded and done again": again },
      { "Answered from the ledger": `${plural(replayed, "step")} met again; the others stood in checkpoints` },
    );
  }
  table.push(
    {
      "The world saw": `${plural(world.pagesServed, "page")} served, ${plural(world.modelRequests, "model request")}, ${plural(world.published, "report")} published`,
    },
    { Cost: `$${result.costUsd.toFixed(4)}${standIn ? " at the model's list price; nothing was spent" : ""}` },
    { "Largest prompt": `${plural(result.largestPromptTokens, "token")}` },
    {
      "At most in memory": `${result.rssMb} MiB; ${Math.round((result.dbBytesPerPage ?? 0) / 1024)} KiB a page in the database`,
    },
    { Thread: result.threadId },
    { Report: result.report ?? "none yet" },
  );
  if (result.stopped !== null) {
    table.push(
      { "Left out": `${plural(result.stopped.unread, "page")}, for want of budget` },
      {
        "To go on": `npx longhaul budget raise ${result.threadId} --usd 1, then npm run demo -- --thread ${result.threadId}`,
      },
    );
  }
  return table.toString();
}

const describe = ({ reads, models, writes }: Counts): string =>
  `${plural(reads, "read")}, ${plural(models, "model call")}, ${plural(writes, "write")}`;
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
