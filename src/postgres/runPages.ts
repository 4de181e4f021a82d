// What the pages of runs read, each in one statement and without a body: a page must stay quick on a ledger of a million
// steps, so every list has an end.
import type { BudgetState } from "../core/budget.js";
import { UNDO_SUFFIX } from "../core/saga.js";
import type { StepState } from "../core/step.js";
import { type BudgetRow, STATE, toState } from "./budgetRows.js";
import type { Database } from "./pool.js";
import { type RunState, SHOWN_STATE } from "./runs.js";
import { TRACED, type TracedStep, type TraceRow, toTraced } from "./trace.js";

const OWN_BUDGETS = `${STATE} where b.scope = any($1::text[])`;

/** The threads' own scopes, by thread. */
export async function budgetsOfThreads(
  database: Database,
  threadIds: readonly string[],
): Promise<Map<string, BudgetState>> {
  const rows = await database.query<BudgetRow>("page_budgets", OWN_BUDGETS, [threadIds]);
  return new Map(rows.map((row) => [row.thread_id, toState(row)]));
}

export interface CurrentStep {
  readonly node: string;
  readonly name: string;
  readonly state: StepState;
}

const CURRENT = `
select t.thread_id, s.node, s.name, s.state from unnest($1::text[]) t (thread_id), lateral (
  select node, coalesce(model, name) as name, state from {schema}.steps where thread_id = t.thread_id order by seq desc limit 1
) s`;

/** The step that each thread recorded last. */
export async function currentSteps(
  database: Database,
  threadIds: readonly string[],
): Promise<Map<string, CurrentStep>> {
  const rows = await database.query<CurrentStep & { thread_id: string }>("page_current", CURRENT, [threadIds]);
  return new Map(rows.map(({ thread_id, ...step }) => [thread_id, step]));
}

const WINDOW = `
with chosen as materialized (
  select seq, ($2::int + row_number() over (order by seq))::int as number
  from (select seq from {schema}.steps where thread_id = $1 order by seq offset $2 limit $3) s
)
select chosen.number, ${TRACED} from chosen join {schema}.steps s on s.thread_id = $1 and s.seq = chosen.seq,
  (select {schema}.ledger_now() as now) at order by s.seq`;

/** Some of a thread's steps, in their order, from the one with the number `after + 1`. */
export async function stepWindow(
  database: Database,
  threadId: string,
  window: { readonly after: number; readonly limit: number },
): Promise<TracedStep[]> {
  const rows = await database.query<TraceRow>("page_steps", WINDOW, [threadId, window.after, window.limit]);
  return rows.map(toTraced);
}

/** What was paid in one of the equal parts of a thread's time. */
export interface Spending {
  readonly part: number;
  readonly costNanoUsd: bigint;
}

const SPENDING = `
with paid as materialized (select at, cost_nano_usd from {schema}.costs where thread_id = $1 and cost_nano_usd is not null),
span as (select extract(epoch from min(at))::float8 as a, extract(epoch from max(at))::float8 as b from paid)
select least($2::int, width_bucket(extract(epoch from at)::float8, a, b + 0.001, $2::int))::int as part, sum(cost_nano_usd)::text as cost
from paid, span group by 1 order by 1`;

/** Costs over time, from the first paid call to the last, in `parts` equal parts counted from 1; parts without one are left out. */
export async function spendingOverTime(database: Database, threadId: string, parts: number): Promise<Spending[]> {
  const rows = await database.query<{ part: number; cost: string }>("page_spending", SPENDING, [threadId, parts]);
  return rows.map(({ part, cost }) => ({ part, costNanoUsd: BigInt(cost) }));
}

const STATES = `
select ${SHOWN_STATE} as state, count(*)::int as threads
from {schema}.threads t, (select {schema}.ledger_now() as now) at where t.deleted_at is null group by 1`;

/** How many threads there are in each state. */
export async function countThreads(database: Database): Promise<Map<RunState, number>> {
  const rows = await database.query<{ state: RunState; threads: number }>("page_states", STATES, []);
  return new Map(rows.map(({ state, threads }) => [state, threads]));
}

const COMMITTED = `
select count(*)::int as writes from {schema}.steps s
where s.thread_id = $1 and s.effect = 'write' and s.state = 'SUCCEEDED' and s.name not like '%${UNDO_SUFFIX}'`;

/** How many writes of a thread stand: a cancel leaves them, and `compensate` undoes them. */
export async function countCommitted(database: Database, threadId: string): Promise<number> {
  const [row] = await database.query<{ writes: number }>("page_committed", COMMITTED, [threadId]);
  return row?.writes ?? 0;
}

const UNSETTLED_COUNT =
  "select count(*)::int as steps from {schema}.steps where doubt_since is not null and state in ('NEEDS_RECONCILIATION', 'WAITING_HUMAN')";

/** How many writes have an outcome that a lookup or a person must settle. */
export async function countUnsettled(database: Database): Promise<number> {
  const [row] = await database.query<{ steps: number }>("page_unsettled", UNSETTLED_COUNT, []);
  return row?.steps ?? 0;
}
