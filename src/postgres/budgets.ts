// Budgets on PostgreSQL. Every statement locks its scopes from the outermost inwards, so that no two wait for each other,
// and moves sums and reservations in one transaction: they always agree.
import type {
  Amounts,
  BudgetLedger,
  BudgetState,
  Exceeded,
  LimitName,
  Reservation,
  ReserveAnswer,
  StoredLimits,
} from "../core/budget.js";
import type { RunTicket } from "../core/ledger.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";

const KINDS = ["nano_usd", "tokens", "model_calls", "tool_calls"] as const;
const each = (text: (kind: (typeof KINDS)[number], i: number) => string) => KINDS.map(text).join(", ");

const STATE = `select b.scope, b.thread_id, b.parent, b.deadline,
  ${each((kind) => `b.limit_${kind} + b.raised_${kind} as allowed_${kind}, b.spent_${kind}, b.reserved_${kind}`)} from {schema}.budgets b`;

const OPEN = `
insert into {schema}.budgets as b (scope, thread_id, parent, depth, ${each((kind) => `limit_${kind}`)}, deadline)
select $1::text, $2::text, $3::text, coalesce((select depth + 1 from {schema}.budgets where scope = $3), 0),
  $4::bigint, $5::bigint, $6::bigint, $7::bigint, $8::timestamptz
on conflict (scope) do update set parent = excluded.parent, depth = excluded.depth, deadline = excluded.deadline,
  ${each((kind) => `limit_${kind} = excluded.limit_${kind}`)}`;

// $1 thread, $2 epoch, $3 id, $4 step key, $5 attempt, $6 scopes, $7 to $10 what is asked for.
const RESERVE = `
with ${NOW},
lease as (
  select 1 as yes from {schema}.threads t, at
  where t.thread_id = $1::text and t.epoch = $2::bigint and t.lease_until > at.now for share of t
),
known as (select 1 as yes from {schema}.reservations where id = $3::text),
b as (select * from {schema}.budgets where scope = any($6::text[]) order by depth, scope for update),
over as (
  select b.scope, b.depth, v.what, v.allowed, v.spent, v.reserved, v.requested
  from b, lateral (values ${KINDS.map((kind, i) => `('${kind}', b.limit_${kind} + b.raised_${kind}, b.spent_${kind}, b.reserved_${kind}, $${i + 7}::bigint)`).join(", ")})
    v (what, allowed, spent, reserved, requested)
  where v.requested > 0 and v.spent + v.reserved + v.requested > v.allowed
  union all
  select b.scope, b.depth, 'deadline', (extract(epoch from b.deadline) * 1000)::bigint, (extract(epoch from at.now) * 1000)::bigint, 0, 0
  from b, at where b.deadline <= at.now
),
made as (
  insert into {schema}.reservations (id, thread_id, epoch, step_key, attempt, scopes, ${KINDS.join(", ")})
  select $3, $1, $2, $4::bytea, $5::int, $6, $7, $8, $9, $10 from lease
  where not exists (select 1 from over) and not exists (select 1 from known) on conflict (id) do nothing returning 1
),
moved as (
  update {schema}.budgets u set ${KINDS.map((kind, i) => `reserved_${kind} = u.reserved_${kind} + $${i + 7}`).join(", ")}
  from made where u.scope = any($6)
)
select (select count(*) from lease)::int as leased, (select count(*) from made)::int as made, (select count(*) from known)::int as known,
  -- What no call under way can free comes first: waiting would not help.
  (select row_to_json(o)::text from (select scope, what, allowed::text, spent::text, reserved::text, requested::text
    from over order by (spent + requested <= allowed), depth limit 1) o) as over`;

// $1 the reservation, $2 to $5 what the call took, null where only the estimate is known.
const SETTLE = `
with gone as (delete from {schema}.reservations where id = $1::text returning *),
b as (select b.scope from {schema}.budgets b, gone where b.scope = any(gone.scopes) order by b.depth, b.scope for update of b)
update {schema}.budgets u set ${KINDS.map(
  (kind, i) => `reserved_${kind} = u.reserved_${kind} - case when gone.settled_at is null then gone.${kind} else 0 end,
  spent_${kind} = u.spent_${kind} + coalesce($${i + 2}::bigint, gone.${kind}) - case when gone.settled_at is null then 0 else gone.${kind} end`,
).join(", ")}
from gone, b where u.scope = b.scope`;

// A call of a run that is gone took what its receipt says, when there is one; else its estimate.
const SWEEP = `
with ${NOW},
dead as (
  select r.id, r.scopes, ${each((kind) => `r.${kind}`)}, s.cost_nano_usd, s.input_tokens + s.output_tokens as used_tokens, s.key is not null as has_receipt
  from {schema}.reservations r join {schema}.threads t using (thread_id) cross join at
  left join {schema}.steps s on s.key = r.step_key and s.attempt = r.attempt and s.state = 'SUCCEEDED'
  where r.settled_at is null and r.scopes && $1::text[] and (t.epoch <> r.epoch or t.lease_until <= at.now) for update of r skip locked
),
settled as (
  update {schema}.reservations r set settled_at = at.now, nano_usd = coalesce(d.cost_nano_usd, d.nano_usd),
    tokens = case when d.has_receipt then coalesce(d.used_tokens, d.tokens) else d.tokens end
  from dead d, at where r.id = d.id returning r.id, r.scopes, r.nano_usd, r.tokens, r.model_calls, r.tool_calls
),
sums as (
  select x.scope, ${each((kind) => `sum(d.${kind})::bigint as held_${kind}, sum(n.${kind})::bigint as took_${kind}`)}
  from dead d join settled n using (id), unnest(d.scopes) x (scope) group by x.scope
),
b as (select b.scope from {schema}.budgets b join sums using (scope) order by b.depth, b.scope for update of b)
update {schema}.budgets u set ${each((kind) => `reserved_${kind} = u.reserved_${kind} - s.held_${kind}, spent_${kind} = u.spent_${kind} + s.took_${kind}`)}
from sums s, b where u.scope = s.scope and b.scope = u.scope returning 1`;

const RAISE = `
with ${NOW},
raised as (
  update {schema}.budgets u set ${KINDS.map((kind, i) => `raised_${kind} = u.raised_${kind} + $${i + 2}::bigint`).join(", ")}
  where u.scope = $1::text returning u.scope, u.thread_id
),
told as (
  insert into {schema}.budget_changes (scope, by_whom, reason, ${KINDS.join(", ")}, at)
  select raised.scope, $6::text, $7::text, $2, $3, $4, $5, at.now from raised, at
)
insert into {schema}.wakes as w (thread_id, due_at, reason) select raised.thread_id, at.now, 'its budget was raised' from raised, at
on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason returning 1`;

export function createBudgetLedger(database: Database): BudgetLedger {
  return {
    open: async ({ threadId }, scope, parent, limits) => {
      await database.query("budget_open", OPEN, [scope, threadId, parent ?? null, ...limitValues(limits)]);
      await sweep(database, [scope]);
      const state = await readBudget(database, scope);
      if (state === undefined) throw new Error("A budget that was just stored is gone.");
      return state;
    },
    reserve: (ticket, reservation) => reserve(database, ticket, reservation),
    settle: async (id, actual) => {
      await database.query("budget_settle", SETTLE, [
        id,
        ...(actual === undefined ? [null, null, null, null] : amountValues(actual)),
      ]);
    },
    sweep: (scopes) => sweep(database, scopes),
    read: (scope) => readBudget(database, scope),
  };
}

function limitValues({ nanoUsd, tokens, modelCalls, toolCalls, deadline }: StoredLimits): unknown[] {
  return [nanoUsd ?? null, tokens ?? null, modelCalls ?? null, toolCalls ?? null, deadline ?? null];
}

function amountValues({ nanoUsd, tokens, modelCalls, toolCalls }: Amounts): unknown[] {
  return [nanoUsd, tokens, modelCalls, toolCalls];
}

interface ReserveRow {
  readonly leased: number;
  readonly made: number;
  readonly known: number;
  readonly over: string | null;
}

const NAMES: Readonly<Record<string, LimitName>> = {
  nano_usd: "usd",
  tokens: "tokens",
  model_calls: "modelCalls",
  tool_calls: "toolCalls",
  deadline: "deadline",
};

async function reserve(database: Database, ticket: RunTicket, reservation: Reservation): Promise<ReserveAnswer> {
  const { id, stepKey, attempt, scopes, request } = reservation;
  const [row] = await database.query<ReserveRow>("budget_reserve", RESERVE, [
    ticket.threadId,
    ticket.epoch,
    id,
    stepKey === undefined ? null : hexToBytes(stepKey),
    attempt,
    scopes,
    ...amountValues(request),
  ]);
  // Our own reservation may have been committed with its answer lost (G20).
  if (row?.made === 1 || row?.known === 1) return { reserved: true };
  if (row?.leased !== 1) return { lost: "lease" };
  if (row.over === null) return { reserved: true };
  const over = JSON.parse(row.over) as Record<
    "scope" | "what" | "allowed" | "spent" | "reserved" | "requested",
    string
  >;
  const exceeded: Exceeded = {
    scope: over.scope,
    limit: NAMES[over.what] ?? "usd",
    allowed: BigInt(over.allowed),
    spent: BigInt(over.spent),
    reserved: BigInt(over.reserved),
    requested: BigInt(over.requested),
  };
  return { exceeded };
}

async function sweep(database: Database, scopes: readonly string[]): Promise<boolean> {
  return (await database.query("budget_sweep", SWEEP, [scopes])).length > 0;
}

type BudgetRow = Readonly<
  Record<`allowed_${(typeof KINDS)[number]}`, string | null> &
    Record<`${"spent" | "reserved"}_${(typeof KINDS)[number]}`, string>
> & {
  readonly scope: string;
  readonly thread_id: string;
  readonly parent: string | null;
  readonly deadline: Date | null;
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

/** Adds to what a scope may spend, and wakes its thread. False for a scope that is not there. */
export async function raiseBudget(
  database: Database,
  scope: string,
  more: Amounts,
  by: string,
  reason: string | undefined,
): Promise<boolean> {
  return (await database.query("budget_raise", RAISE, [scope, ...amountValues(more), by, reason ?? null])).length > 0;
}

// bigint columns arrive as text. Tokens and calls stay far below 2^53; money may not.
function toState(row: BudgetRow): BudgetState {
  const limit = (value: string | null) => (value === null ? undefined : Number(value));
  const amounts = (of: "spent" | "reserved"): Amounts => ({
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
      deadline: row.deadline ?? undefined,
    },
    spent: amounts("spent"),
    reserved: amounts("reserved"),
  };
}
