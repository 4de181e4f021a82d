// Reading steps: the row as it stands in PostgreSQL, and the record that the core and people see.
import type { RecordedFailure } from "../core/errors.js";
import type { Refused, RunTicket, StepRecord } from "../core/ledger.js";
import type { Effect, StepKind, StepState } from "../core/step.js";
import { isHeld, whyRefused } from "./cancels.js";
import type { Database } from "./pool.js";
import { SELECT_USAGE, toUsage, type UsageColumns } from "./usageColumns.js";

interface StepRow extends UsageColumns {
  readonly key: Buffer;
  readonly thread_id: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly version: string | null;
  readonly node: string;
  readonly superstep: number;
  readonly checkpoint_ns: string;
  readonly checkpoint_id: string;
  readonly state: StepState;
  readonly attempt: number;
  readonly claim_id: string | null;
  readonly lease_until: Date | null;
  readonly lease_live: boolean | null;
  readonly failures: number;
  readonly lookups: number;
  readonly input_hash: Buffer;
  readonly input: Buffer | null;
  readonly output: Buffer | null;
  readonly error: RecordedFailure | null;
  readonly doubt_since: Date | null;
  readonly first_unresolved_send_at: Date | null;
  readonly settled_from: Date | null;
  readonly effect_known: boolean;
  readonly due_at: Date | null;
  readonly drift_hash: Buffer | null;
  readonly drift_decision: "keep" | "fail" | null;
  readonly sibling_key: Buffer | null;
  readonly base_pruned: "passed" | "left" | null;
  readonly started_at: Date;
  readonly ended_at: Date | null;
  readonly read_at: Date;
}

/** The one reading of the clock in a statement. */
export const NOW = "at as materialized (select {schema}.ledger_now() as now)";

const COLUMNS = `s.key, s.thread_id, s.kind, s.effect, s.name, s.version, s.node, s.superstep, s.checkpoint_ns, s.checkpoint_id,
  s.state, s.attempt, s.claim_id, s.lease_until, s.lease_until > at.now as lease_live, s.failures, s.lookups, s.input_hash, s.input,
  s.output, s.error, s.doubt_since, s.first_unresolved_send_at, s.effect_known, s.due_at, s.drift_hash, s.drift_decision, s.sibling_key, s.base_pruned,
  greatest(s.could_send_until, s.lease_until) + make_interval(secs => s.settle_ms / 1000.0) as settled_from,
  ${SELECT_USAGE}, s.started_at, s.ended_at, at.now as read_at`;
const SELECT = `select ${COLUMNS} from {schema}.steps s, (select {schema}.ledger_now() as now) at`;

export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex, "hex");
}

export async function findStep(database: Database, key: string): Promise<StepRecord | undefined> {
  const [row] = await database.query<StepRow>("find_step", `${SELECT} where s.key = $1`, [hexToBytes(key)]);
  return row && toRecord(row, database);
}

const FIND_READ = `
with ${NOW}
select ${COLUMNS} from at join {schema}.threads t on t.thread_id = $2::text and ${isHeld("$3", "at.now")}
left join {schema}.steps s on s.key = $1`;

/** What is recorded of a read, for a run that still has its thread. */
export async function findRead(
  database: Database,
  ticket: RunTicket,
  key: string,
): Promise<{ existing: StepRecord | undefined } | Refused> {
  const values = [hexToBytes(key), ticket.threadId, ticket.epoch];
  const [row] = await database.query<Omit<StepRow, "key"> & { key: Buffer | null }>("find_read", FIND_READ, values);
  if (row === undefined) return whyRefused(database, ticket);
  const { key: found } = row;
  return { existing: found === null ? undefined : toRecord({ ...row, key: found }, database) };
}

function toRecord(row: StepRow, { bodies, outputs }: Database): StepRecord {
  // Decoded when asked for: what only looks at states needs no codec.
  const body = (stored: Buffer | null) => (stored === null ? undefined : bodies.fromStored(stored));
  return {
    key: row.key.toString("hex"),
    state: row.state,
    kind: row.kind,
    effect: row.effect,
    name: row.name,
    version: row.version ?? undefined,
    position: {
      threadId: row.thread_id,
      node: row.node,
      taskId: row.checkpoint_ns.slice(row.checkpoint_ns.lastIndexOf(":") + 1),
      checkpointNs: row.checkpoint_ns,
      checkpointId: row.checkpoint_id,
      superstep: row.superstep,
    },
    attempt: row.attempt,
    claimId: row.claim_id ?? undefined,
    failures: row.failures,
    lookups: row.lookups,
    inputHash: row.input_hash.toString("hex"),
    get input() {
      return body(row.input);
    },
    get output() {
      return row.output === null ? undefined : outputs.fromStored(row.output);
    },
    failure: row.error ?? undefined,
    usage: toUsage(row),
    doubtSince: row.doubt_since ?? undefined,
    firstUnresolvedSendAt: row.first_unresolved_send_at ?? undefined,
    settledFrom: row.settled_from ?? undefined,
    effectKnown: row.effect_known,
    leaseLive: row.lease_live === true,
    leaseUntil: row.lease_until ?? undefined,
    dueAt: row.due_at ?? undefined,
    drift:
      row.drift_hash === null
        ? undefined
        : { inputHash: row.drift_hash.toString("hex"), decision: row.drift_decision ?? undefined },
    siblingKey: row.sibling_key?.toString("hex"),
    passed: row.base_pruned === "passed",
    readAt: row.read_at,
  };
}

/** A step as `longhaul show` prints it. */
export interface StepTrace {
  readonly record: StepRecord;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
}

const LAST_WRITE = `${SELECT} where s.thread_id = $1 and s.effect = 'write' order by s.seq desc limit 1`;

/** The write of a thread that was claimed last. */
export async function lastWrite(database: Database, threadId: string): Promise<StepRecord | undefined> {
  const [row] = await database.query<StepRow>("last_write", LAST_WRITE, [threadId]);
  return row && toRecord(row, database);
}

/** The steps of a thread, in the order in which they were first recorded. */
export async function stepsOfThread(database: Database, threadId: string): Promise<StepTrace[]> {
  const rows = await database.query<StepRow>("steps_of_thread", `${SELECT} where s.thread_id = $1 order by s.seq`, [
    threadId,
  ]);
  return rows.map((row) => ({
    record: toRecord(row, database),
    startedAt: row.started_at,
    endedAt: row.ended_at ?? undefined,
  }));
}

// What no run has met yet since its holder died stands under threads that are still called running.
const WAITING = `
with ${NOW},
found as (
  select key from {schema}.steps where doubt_since is not null
  union select key from {schema}.steps where sibling_key is not null and state = 'WAITING_HUMAN'
  union select key from {schema}.steps where drift_hash is not null and drift_decision is null
  union select s.key from {schema}.threads t join {schema}.steps s using (thread_id), at
    where t.state = 'running' and s.state = 'RUNNING' and s.effect = 'write' and s.lease_until <= at.now
)
${SELECT} where s.key in (select key from found) and ($2::text is null or s.thread_id = $2) order by s.seq limit $1`;

/** Steps that evidence or a person must settle, the oldest first; those of one thread when it is named. */
export async function unsettledSteps(database: Database, limit: number, threadId?: string): Promise<StepRecord[]> {
  const rows = await database.query<StepRow>("unsettled", WAITING, [limit, threadId ?? null]);
  return rows.map((row) => toRecord(row, database));
}

export interface HistoryEntry {
  readonly attempt: number;
  readonly from: StepState | undefined;
  readonly to: StepState;
  readonly actor: string;
  readonly reason: string | undefined;
  readonly at: Date;
}

interface EventRow {
  readonly attempt: number;
  readonly from_state: StepState | null;
  readonly to_state: StepState;
  readonly actor: string;
  readonly reason: string | null;
  readonly at: Date;
}

/** Everything that ever happened to a step, by whom and why. */
export async function historyOf(database: Database, key: string): Promise<HistoryEntry[]> {
  const rows = await database.query<EventRow>(
    "history",
    "select attempt, from_state, to_state, actor, reason, at from {schema}.step_events where key = $1 order by n",
    [hexToBytes(key)],
  );
  return rows.map(({ attempt, from_state, to_state, actor, reason, at }) => ({
    attempt,
    from: from_state ?? undefined,
    to: to_state,
    actor,
    reason: reason ?? undefined,
    at,
  }));
}
