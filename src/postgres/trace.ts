// Reading where time and money went: the steps of one thread without their bodies, and the sums over paid calls.
import type { Effect, StepKind, StepState, Usage } from "../core/step.js";
import type { Database } from "./pool.js";
import { SELECT_USAGE, toUsage, type UsageColumns } from "./usageColumns.js";

/** A step as far as time and money go: nothing of its input, its output or its error. */
export interface TracedStep {
  /** Its place among the thread's steps, from 1: the order in which they were first recorded. */
  readonly number: number;
  readonly key: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly node: string;
  readonly superstep: number;
  readonly checkpointNs: string;
  readonly state: StepState;
  readonly attempt: number;
  readonly failures: number;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
  /** Until when it was at work, as far as is known: to its end, to now while it runs, else to its last attempt's start. */
  readonly activeUntil: Date;
  /** Of all its attempts together. */
  readonly usage: Usage | undefined;
}

export interface TraceRow extends UsageColumns {
  readonly number: number;
  readonly key: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly node: string;
  readonly superstep: number;
  readonly checkpoint_ns: string;
  readonly state: StepState;
  readonly attempt: number;
  readonly failures: number;
  readonly started_at: Date;
  readonly ended_at: Date | null;
  readonly active_until: Date;
}

/** The columns of a TracedStep but its number, from `steps s` and `at (now)`. */
export const TRACED = `encode(s.key, 'hex') as key, s.kind, s.effect, s.name, s.node, s.superstep,
  s.checkpoint_ns, s.state, s.attempt, s.failures, s.started_at, s.ended_at,
  coalesce(s.ended_at, case when s.state = 'RUNNING' then at.now else greatest(s.started_at, s.claimed_at) end) as active_until,
  ${SELECT_USAGE}`;

const TRACE = `
select (row_number() over (order by s.seq))::int as number, ${TRACED}
from {schema}.steps s, (select {schema}.ledger_now() as now) at where s.thread_id = $1 order by s.seq`;

/** Every step of a thread, in the order in which they were first recorded. */
export async function traceThread(database: Database, threadId: string): Promise<TracedStep[]> {
  const rows = await database.query<TraceRow>("trace", TRACE, [threadId]);
  return rows.map(toTraced);
}

export function toTraced(row: TraceRow): TracedStep {
  return {
    number: row.number,
    key: row.key,
    kind: row.kind,
    effect: row.effect,
    name: row.name,
    node: row.node,
    superstep: row.superstep,
    checkpointNs: row.checkpoint_ns,
    state: row.state,
    attempt: row.attempt,
    failures: row.failures,
    startedAt: row.started_at,
    endedAt: row.ended_at ?? undefined,
    activeUntil: row.active_until,
    usage: toUsage(row),
  };
}

export const COST_GROUPS = ["thread", "node", "tool", "model", "hour"] as const;
export type CostGroup = (typeof COST_GROUPS)[number];

/** A stretch of time, its end excluded. */
export interface Span {
  readonly from: Date;
  readonly to: Date;
}

export interface CostQuery {
  readonly by: CostGroup;
  readonly threadId?: string | undefined;
  /** Calls that were paid in one of these; all of them when left out. */
  readonly spans?: readonly Span[] | undefined;
  /** Of the hours. An IANA name. */
  readonly timeZone: string;
  readonly limit: number;
}

export interface CostSum {
  /** The thread, node, tool or model; an hour's beginning; undefined for calls outside every tool. */
  readonly of: string | Date | undefined;
  readonly calls: number;
  /** Calls that took more than one attempt. Each is counted once, with what all its attempts cost. */
  readonly retried: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Undefined when none of the calls has a price. */
  readonly costNanoUsd: bigint | undefined;
  readonly unpriced: number;
  readonly estimated: number;
}

interface CostRow {
  readonly total: boolean;
  readonly of: string | Date | null;
  readonly calls: number;
  readonly retried: number;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly cost_nano_usd: string | null;
  readonly unpriced: number;
  readonly estimated: number;
}

const GROUP_BY: Readonly<Record<CostGroup, string>> = {
  thread: "thread_id",
  node: "node",
  tool: "tool",
  model: "model",
  hour: "date_trunc('hour', at, $5::text)",
};

// The zone is a parameter of every grouping, so that one list of values serves all.
const costsBy = (by: CostGroup) => `
with chosen as (
  select ${GROUP_BY[by]} as of, c.* from {schema}.costs c
  where ($1::text is null or thread_id = $1) and $5::text is not null
    and ($2::timestamptz[] is null or exists (select 1 from unnest($2, $3::timestamptz[]) span (a, b) where at >= a and at < b))
)
select grouping(of) = 1 as total, of, count(*)::int as calls, (count(*) filter (where attempt > 1))::int as retried,
  sum(input_tokens)::text as input_tokens, sum(output_tokens)::text as output_tokens, sum(cost_nano_usd)::text as cost_nano_usd,
  (count(*) filter (where unpriced))::int as unpriced, (count(*) filter (where estimated))::int as estimated
from chosen group by grouping sets ((of), ())
order by total desc, ${by === "hour" ? "of" : "sum(cost_nano_usd) desc nulls last, count(*) desc, of"} limit $4::int + 1`;

/** Sums over paid calls, the dearest first (hours in their order), and the sum of all of them, shown or not. */
export async function sumCalls(database: Database, query: CostQuery): Promise<{ total: CostSum; groups: CostSum[] }> {
  const { by, threadId, spans, timeZone, limit } = query;
  const values = [threadId ?? null, spans?.map(({ from }) => from) ?? null, spans?.map(({ to }) => to) ?? null];
  const rows = await database.query<CostRow>(`costs_by_${by}`, costsBy(by), [...values, limit, timeZone]);
  const [total, ...groups] = rows.map(toSum);
  if (total === undefined) throw new Error("PostgreSQL answered a sum without a row.");
  return { total, groups };
}

function toSum(row: CostRow): CostSum {
  return {
    of: row.of ?? undefined,
    calls: row.calls,
    retried: row.retried,
    inputTokens: Number(row.input_tokens ?? 0),
    outputTokens: Number(row.output_tokens ?? 0),
    costNanoUsd: row.cost_nano_usd === null ? undefined : BigInt(row.cost_nano_usd),
    unpriced: row.unpriced,
    estimated: row.estimated,
  };
}

/** From the first paid call to the last; undefined when there is none. */
export async function paidSpan(database: Database, threadId: string | undefined): Promise<Span | undefined> {
  const [row] = await database.query<{ from: Date | null; to: Date | null }>(
    "paid_span",
    "select min(at) as from, max(at) as to from {schema}.costs where $1::text is null or thread_id = $1",
    [threadId ?? null],
  );
  return row === undefined || row.from === null || row.to === null ? undefined : { from: row.from, to: row.to };
}
