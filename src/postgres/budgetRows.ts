// A budget's row as it is read, and what people do to it.
import type { Amounts, BudgetState, Totals } from "../core/budget.js";
import { plainText } from "../core/failure.js";
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

/** What calls take, and is held back for them. */
export const AMOUNTS = ["nano_usd", "tokens", "model_calls", "tool_calls"] as const;
/** All that is counted. */
export const TOTALS = [...AMOUNTS, "iterations", "active_ms"] as const;

/** A list for SQL, with an entry for each column. */
export function each<Name extends string>(names: readonly Name[], text: (name: Name, i: number) => string): string {
  return names.map(text).join(", ");
}

export const STATE = `select b.scope, b.thread_id, b.parent, b.deadline, b.wrapping_up, b.exceeded_at, b.suspended_ms,
  ${each(TOTALS, (name) => `b.limit_${name} + b.raised_${name} as allowed_${name}, b.spent_${name}`)},
  ${each(AMOUNTS, (name) => `b.reserved_${name}, b.kept_${name}`)} from {schema}.budgets b`;

// A time that is not later than the one there is changes nothing.
const RAISE = `
with ${NOW},
raised as (
  update {schema}.budgets u set wrapping_up = false, exceeded_at = null,
    raised_deadline = greatest(u.raised_deadline, $10::timestamptz), deadline = case when u.deadline is not null then greatest(u.deadline, $10) end, ${each(TOTALS, (name, i) => `raised_${name} = u.raised_${name} + $${i + 4}::bigint`)}
  where u.scope = $1::text returning u.scope, u.thread_id
),
told as (
  insert into {schema}.budget_changes (scope, by_whom, reason, ${TOTALS.join(", ")}, deadline, at)
  select raised.scope, $2::text, $3::text, ${each(TOTALS, (_, i) => `$${i + 4}`)}, $10, at.now from raised, at
)
insert into {schema}.wakes as w (thread_id, due_at, reason) select raised.thread_id, at.now, 'its budget was raised' from raised, at
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason returning 1`;

type Total = (typeof TOTALS)[number];
type Amount = (typeof AMOUNTS)[number];
export type BudgetRow = Readonly<
  Record<`allowed_${Total}`, string | null> &
    Record<`spent_${Total}` | `${"reserved" | "kept"}_${Amount}` | "suspended_ms", string>
> & {
  readonly scope: string;
  readonly thread_id: string;
  readonly parent: string | null;
  readonly deadline: Date | null;
  readonly wrapping_up: boolean;
  readonly exceeded_at: Date | null;
};

export async function readBudget(database: Database, scope: string): Promise<BudgetState | undefined> {
  const [row] = await database.query<BudgetRow>("budget_read", `${STATE} where b.scope = $1`, [scope]);
  return row && toState(row);
}

/** The scopes of a thread, the outermost first. */
export async function budgetsOfThread(database: Database, threadId: string): Promise<BudgetState[]> {
  const rows = await database.query<BudgetRow>(
    "budgets_of_thread",
    `${STATE} where b.thread_id = $1 order by b.depth, b.scope`,
    [threadId],
  );
  return rows.map(toState);
}

/** Something that happened to a budget: by itself, or by a person. */
export interface BudgetHistoryRow {
  readonly scope: string;
  readonly at: Date;
  readonly kind: string;
  readonly by: string | null;
  readonly detail: object;
}

const HISTORY = `
select e.scope, e.at, e.kind, null as by, e.detail from {schema}.budget_events e join {schema}.budgets b using (scope) where b.thread_id = $1
union all
select c.scope, c.at, 'raised', c.by_whom, jsonb_strip_nulls(jsonb_build_object('reason', c.reason, 'deadline', c.deadline, 'usd', nullif(c.nano_usd, 0) / 1e9,
  ${each(TOTALS.slice(1), (name) => `'${camel(name)}', nullif(c.${name}, 0)`)}))
from {schema}.budget_changes c join {schema}.budgets b using (scope) where b.thread_id = $1
order by at`;

/** What happened to the budgets of a thread, the oldest first. */
export function budgetHistory(database: Database, threadId: string): Promise<BudgetHistoryRow[]> {
  return database.query<BudgetHistoryRow>("budget_history", HISTORY, [threadId]);
}

function camel(column: string): string {
  return column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Adds to what a scope may spend, and wakes its thread. False for a scope that is not there. */
export async function raiseBudget(
  database: Database,
  scope: string,
  more: Totals & { readonly deadline: Date | undefined },
  by: string,
  reason: string | undefined,
): Promise<boolean> {
  const { nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs, deadline = null } = more;
  const said = [plainText(by, 200), reason === undefined ? null : plainText(reason, 500)];
  const values = [scope, ...said, nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs, deadline];
  return (await database.query("budget_raise", RAISE, values)).length > 0;
}

// bigint columns arrive as text. Tokens and calls stay far below 2^53; money may not.
export function toState(row: BudgetRow): BudgetState {
  const limit = (value: string | null) => (value === null ? undefined : Number(value));
  const amounts = (of: "spent" | "reserved" | "kept"): Amounts => ({
    nanoUsd: BigInt(row[`${of}_nano_usd`]),
    tokens: Number(row[`${of}_tokens`]),
    modelCalls: Number(row[`${of}_model_calls`]),
    toolCalls: Number(row[`${of}_tool_calls`]),
  });
  return {
    scope: row.scope,
    threadId: row.thread_id,
    parent: row.parent ?? undefined,
    allowed: {
      nanoUsd: row.allowed_nano_usd === null ? undefined : BigInt(row.allowed_nano_usd),
      tokens: limit(row.allowed_tokens),
      modelCalls: limit(row.allowed_model_calls),
      toolCalls: limit(row.allowed_tool_calls),
      iterations: limit(row.allowed_iterations),
      activeMs: limit(row.allowed_active_ms),
      deadline: row.deadline ?? undefined,
    },
    kept: amounts("kept"),
    wrappingUp: row.wrapping_up,
    exceeded: row.exceeded_at !== null,
    spent: { ...amounts("spent"), iterations: Number(row.spent_iterations), activeMs: Number(row.spent_active_ms) },
    reserved: amounts("reserved"),
    suspendedMs: Number(row.suspended_ms),
  };
}
