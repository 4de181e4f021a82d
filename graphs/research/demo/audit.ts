// Compares what the world saw with what the ledger has on record. Every request must be one of two things: the one that a
// receipt stands for, or one that was under way when the worker was killed. Whatever is left was sent for nothing.
import type { RequestKind, WorldRequest } from "../world/requestLog.js";
import type { Receipt } from "./receipts.js";

export interface Counts {
  readonly reads: number;
  readonly writes: number;
  readonly models: number;
}

/** A kill: which requests had arrived by then, and when the next worker was started. */
export interface Kill {
  readonly requestsBefore: number;
  readonly nextStartedAt: Date;
}

export interface Evidence {
  readonly requests: readonly WorldRequest[];
  readonly receipts: readonly Receipt[];
  readonly kills: readonly Kill[];
  /** Receipts from before this cannot stand for a request that was counted here. */
  readonly startedAt: Date;
}

export interface Audit {
  readonly recorded: Counts;
  /** Requests that had no committed receipt when their worker was killed. */
  readonly inFlightAtKill: number;
  readonly duplicates: Counts;
}

const GROUPS: Record<keyof Counts, readonly RequestKind[]> = {
  reads: ["page", "search"],
  writes: ["publish"],
  models: ["model"],
};

/** Pure: the same evidence gives the same audit. */
export function audit(evidence: Evidence): Audit {
  const { receipts } = evidence;
  const reads = examine(evidence, "reads");
  const writes = examine(evidence, "writes");
  const models = examine(evidence, "models");
  return {
    recorded: {
      reads: receipts.filter((receipt) => receipt.kind !== "llm" && receipt.effect === "read").length,
      writes: receipts.filter((receipt) => receipt.kind !== "llm" && receipt.effect === "write").length,
      models: receipts.filter((receipt) => receipt.kind === "llm").length,
    },
    inFlightAtKill: reads.inFlight + writes.inFlight + models.inFlight,
    duplicates: { reads: reads.duplicates, writes: writes.duplicates, models: models.duplicates },
  };
}

/**
 * Requests are grouped by what they asked for, not by the step that sent them: a page that two steps fetched is a
 * duplicate although both fetches are on record.
 */
function examine(evidence: Evidence, group: keyof Counts): { inFlight: number; duplicates: number } {
  const recordedAt = new Map(evidence.receipts.map((receipt) => [receipt.key, receipt.recordedAt]));
  const byIdentity = new Map<string, { request: WorldRequest; index: number }[]>();
  for (const [index, request] of evidence.requests.entries()) {
    if (!GROUPS[group].includes(request.kind)) continue;
    byIdentity.set(request.identity, [...(byIdentity.get(request.identity) ?? []), { request, index }]);
  }
  let inFlight = 0;
  let duplicates = 0;
  for (const same of byIdentity.values()) {
    const times = same.flatMap(({ request }) => recordedAt.get(request.stepKey ?? "") ?? []);
    const accounted = times.length > 0 && times.every((time) => time >= evidence.startedAt) ? 1 : 0;
    const open = same.filter(({ request, index }) =>
      wasOpenAtKill(index, recordedAt.get(request.stepKey ?? ""), evidence.kills),
    ).length;
    inFlight += open;
    duplicates += Math.max(0, same.length - accounted - open);
  }
  return { inFlight, duplicates };
}

function wasOpenAtKill(index: number, recordedAt: Date | undefined, kills: readonly Kill[]): boolean {
  // The first kill after the request is the one that its worker died of.
  const kill = kills.find(({ requestsBefore }) => index < requestsBefore);
  return kill !== undefined && (recordedAt === undefined || recordedAt >= kill.nextStartedAt);
}
