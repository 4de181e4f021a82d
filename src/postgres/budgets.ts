// Budgets on PostgreSQL. Every statement locks its scopes from the outermost inwards, so that no two wait for each other,
// and moves sums and reservations in one transaction: they always agree.
import type {
  Amounts,
  BudgetEvent,
  BudgetLedger,
  Exceeded,
  LimitName,
  Reservation,
  ReserveAnswer,
  ScopeTerms,
  Superstep,
} from "../core/budget.js";
import type { RunTicket } from "../core/ledger.js";
import { AMOUNTS, each, readBudget, TOTALS } from "./budgetRows.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";
import { IS_UNHURRIED, UNHURRIED } from "./steps.js";

// $1 scope, $2 thread, $3 parent, $4 whether the limits are those of the first opening, $5 deadline, $6 to $11 limits, $12 to $15
// what is kept back, $16 whether there is new input, $17 what a refused call does.
const OPEN = `
insert into {schema}.budgets as b (scope, thread_id, parent, depth, deadline, on_exceeded, ${each(TOTALS, (name) => `limit_${name}`)},
  ${each(AMOUNTS, (name) => `kept_${name}`)})
select $1::text, $2::text, $3::text, coalesce((select depth + 1 from {schema}.budgets where scope = $3), 0), $5::timestamptz, $17::text,
  ${each(TOTALS, (_, i) => `$${i + 6}::bigint`)}, ${each(AMOUNTS, (_, i) => `$${i + 12}::bigint`)}
on conflict (scope) do update set wrapping_up = b.wrapping_up and not $16::boolean,
  exceeded_at = case when $16 then null else b.exceeded_at end, parent = excluded.parent, depth = excluded.depth, on_exceeded = excluded.on_exceeded,
  deadline = case when excluded.deadline is not null then greatest(excluded.deadline, b.raised_deadline) end,
  ${each(TOTALS, (name) => `limit_${name} = case when $4::boolean then b.limit_${name} else excluded.limit_${name} end`)},
  ${each(AMOUNTS, (name) => `kept_${name} = excluded.kept_${name}`)}`;

// A new run of the thread. What late answers would still correct belongs to the run before.
const ANEW = `
with ${NOW},
b as (select * from {schema}.budgets where scope = $1::text for update),
gone as (delete from {schema}.reservations r using b where r.settled_at is not null and b.scope = any(r.scopes)),
told as (
  insert into {schema}.budget_events (scope, kind, detail, at)
  select b.scope, 'new run', jsonb_build_object('spentNanoUsd', b.spent_nano_usd::text, 'tokens', b.spent_tokens), at.now from b, at
)
update {schema}.budgets u set wrapping_up = false, exceeded_at = null, suspended_ms = 0, raised_deadline = null, deadline = $2::timestamptz,
  ${each(TOTALS, (name) => `raised_${name} = 0, spent_${name} = 0`)}
from b where u.scope = b.scope`;

// What is in the way whatever is asked for: a time that is over, work that is done. The wrap-up may still work.
const OVER_TIME = `
  select b.scope, b.depth, 'deadline' as what, (extract(epoch from b.deadline) * 1000)::bigint as allowed,
    (extract(epoch from at.now) * 1000)::bigint as spent, 0::bigint as reserved, 0::bigint as requested
  from b, at where b.deadline <= at.now and not b.wrapping_up
  union all
  select b.scope, b.depth, 'active_ms', b.limit_active_ms + b.raised_active_ms, b.spent_active_ms, 0, 0
  from b where b.spent_active_ms >= b.limit_active_ms + b.raised_active_ms and not b.wrapping_up`;

const WORST = `
  -- What no call under way can free comes first: waiting would not help.
  (select row_to_json(o)::text from (select scope, what, allowed::text, spent::text, reserved::text, requested::text
    from over order by (spent + requested <= allowed), depth limit 1) o) as over`;

// $1 thread, $2 epoch, $3 id, $4 step key, $5 attempt, $6 scopes, $7 to $10 what is asked for.
// It does not wait for the disk while it holds the row that all wait for; FLUSH does, before anything is sent.
const RESERVE = `
with ${NOW}, ${UNHURRIED},
lease as (
  select 1 as yes from {schema}.threads t, at
  where t.thread_id = $1::text and t.epoch = $2::bigint and t.lease_until > at.now for share of t
),
known as (select 1 as yes from {schema}.reservations where id = $3::text),
b as (select * from {schema}.budgets where scope = any($6::text[]) order by depth, scope for update),
over as (
  select b.scope, b.depth, v.what, v.allowed, v.spent, v.reserved, v.requested
  from b, lateral (values ${each(AMOUNTS, (name, i) => `('${name}', b.limit_${name} + b.raised_${name} - case when b.wrapping_up then 0 else b.kept_${name} end, b.spent_${name}, b.reserved_${name}, $${i + 7}::bigint)`)})
    v (what, allowed, spent, reserved, requested)
  where v.requested > 0 and v.spent + v.reserved + v.requested > v.allowed
  union all ${OVER_TIME}
),
made as (
  insert into {schema}.reservations (id, thread_id, epoch, step_key, attempt, scopes, ${AMOUNTS.join(", ")})
  select $3, $1, $2, $4::bytea, $5::int, $6, $7, $8, $9, $10 from lease
  where not exists (select 1 from over) and not exists (select 1 from known) on conflict (id) do nothing returning 1
),
moved as (
  update {schema}.budgets u set ${each(AMOUNTS, (name, i) => `reserved_${name} = u.reserved_${name} + $${i + 7}`)}
  from made where u.scope = any($6)
)
select (select count(*) from lease)::int as leased, (select count(*) from made)::int as made, (select count(*) from known)::int as known, ${IS_UNHURRIED}, ${WORST}`;

/** Waits until all that was committed before is on disk: PostgreSQL writes its log in order, and many wait as one. */
const FLUSH = "select pg_logical_emit_message(true, 'longhaul', '')";

// A settlement that a crash of PostgreSQL takes back leaves the reservation, which is settled again by the next run.
// $1 the reservation, $2 to $5 what the call took, null where only the estimate is known.
const SETTLE = `
with ${UNHURRIED}, gone as (delete from {schema}.reservations where id = $1::text returning *),
b as (select b.scope from {schema}.budgets b, gone where b.scope = any(gone.scopes) order by b.depth, b.scope for update of b)
update {schema}.budgets u set ${each(
  AMOUNTS,
  (name, i) => `reserved_${name} = u.reserved_${name} - case when gone.settled_at is null then gone.${name} else 0 end,
  spent_${name} = u.spent_${name} + coalesce($${i + 2}::bigint, gone.${name}) - case when gone.settled_at is null then 0 else gone.${name} end`,
)}
from gone, b, unhurried where u.scope = b.scope`;

// A call of a run that is gone took what its receipt says, when there is one; else its estimate.
const SWEEP = `
with ${NOW},
dead as (
  select r.id, r.scopes, ${each(AMOUNTS, (name) => `r.${name}`)}, s.cost_nano_usd, s.input_tokens + s.output_tokens as used_tokens, s.key is not null as has_receipt
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
  select x.scope, ${each(AMOUNTS, (name) => `sum(d.${name})::bigint as held_${name}, sum(n.${name})::bigint as took_${name}`)}
  from dead d join settled n using (id), unnest(d.scopes) x (scope) group by x.scope
),
b as (select b.scope from {schema}.budgets b join sums using (scope) order by b.depth, b.scope for update of b)
update {schema}.budgets u set ${each(AMOUNTS, (name) => `reserved_${name} = u.reserved_${name} - s.held_${name}, spent_${name} = u.spent_${name} + s.took_${name}`)}
from sums s, b where u.scope = s.scope and b.scope = u.scope returning 1`;

// $1 thread, $2 namespace, $3 superstep, $4 scopes. Nodes of one superstep may ask at once: whoever comes second finds it counted.
const SUPERSTEP = `
with ${NOW},
known as (select 1 as yes from {schema}.budget_positions where thread_id = $1::text and checkpoint_ns = $2::text and superstep = $3::int),
b as (select * from {schema}.budgets where scope = any($4::text[]) order by depth, scope for update),
over as (
  select b.scope, b.depth, 'iterations' as what, b.limit_iterations + b.raised_iterations as allowed, b.spent_iterations as spent,
    0::bigint as reserved, 1::bigint as requested
  from b where b.spent_iterations >= b.limit_iterations + b.raised_iterations and not b.wrapping_up and not exists (select 1 from known)
  union all ${OVER_TIME}
),
made as (
  insert into {schema}.budget_positions as p (thread_id, checkpoint_ns, superstep)
  select $1, $2, $3 where not exists (select 1 from over)
  on conflict (thread_id, checkpoint_ns) do update set superstep = excluded.superstep where p.superstep <> excluded.superstep
  returning 1
),
moved as (update {schema}.budgets u set spent_iterations = u.spent_iterations + 1 from made where u.scope = any($4))
select ${WORST}`;

const TIME = `update {schema}.budgets set spent_active_ms = greatest(spent_active_ms, $2::bigint), suspended_ms = greatest(suspended_ms, $3::bigint)
where scope = $1::text`;

const WRAP_UP = `
with ${NOW}, b as (update {schema}.budgets set wrapping_up = true where scope = $1::text and not wrapping_up returning scope)
insert into {schema}.budget_events (scope, kind, detail, at) select b.scope, 'wrapping up', '{}', at.now from b, at`;

// $1 the scopes, the innermost first: it has the note, and all of them the mark.
const EXCEEDED = `
with ${NOW},
b as (select scope from {schema}.budgets where scope = any($1::text[]) order by depth, scope for update),
marked as (update {schema}.budgets u set exceeded_at = coalesce(u.exceeded_at, at.now) from b, at where u.scope = b.scope),
last as (select kind, detail from {schema}.budget_events where scope = $1[1] order by id desc limit 1)
insert into {schema}.budget_events (scope, kind, detail, at) select $1[1], 'exceeded', $2::jsonb, at.now from at
where exists (select 1 from b where scope = $1[1]) and not exists (select 1 from last where kind = 'exceeded' and detail = $2::jsonb)`;

const NOTE = `
with ${NOW}, last as (select kind, detail from {schema}.budget_events where scope = $1::text order by id desc limit 1)
insert into {schema}.budget_events (scope, kind, detail, at) select $1, $2::text, $3::jsonb, at.now from at
where exists (select 1 from {schema}.budgets where scope = $1) and not exists (select 1 from last where kind = $2 and detail = $3::jsonb)`;

export function createBudgetLedger(database: Database): BudgetLedger {
  return {
    open: (ticket, terms) => open(database, ticket, terms),
    reserve: (ticket, reservation) => reserve(database, ticket, reservation),
    settle: async (id, actual) => {
      await database.query("budget_settle", SETTLE, [
        id,
        ...(actual === undefined ? [null, null, null, null] : amountValues(actual)),
      ]);
    },
    beginSuperstep: (superstep, scopes) => beginSuperstep(database, superstep, scopes),
    recordTime: async (scope, activeMs, suspendedMs) => {
      await database.query("budget_time", TIME, [scope, Math.round(activeMs), Math.round(suspendedMs)]);
    },
    beginWrapUp: async (scope) => {
      await database.query("budget_wrap_up", WRAP_UP, [scope]);
    },
    noteExceeded: async (scopes, { scope, limit }) => {
      await database.query("budget_exceeded", EXCEEDED, [scopes, JSON.stringify({ scope, limit })]);
    },
    note: async ({ scope, kind, detail }: BudgetEvent) => {
      await database.query("budget_note", NOTE, [scope, kind, JSON.stringify(detail)]);
    },
    sweep: (scopes) => sweep(database, scopes),
    read: (scope) => readBudget(database, scope),
  };
}

async function open(database: Database, { threadId }: RunTicket, terms: ScopeTerms): ReturnType<BudgetLedger["open"]> {
  const { scope, parent, limits, kept, once, newInput, anew } = terms;
  const { nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs, deadline } = limits;
  const values = [nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs].map((limit) => limit ?? null);
  const given = [
    scope,
    threadId,
    parent ?? null,
    once,
    deadline ?? null,
    ...values,
    ...amountValues(kept),
    newInput,
    terms.onExceeded ?? null,
  ];
  await database.query("budget_open", OPEN, given);
  await sweep(database, [scope]);
  if (anew) await database.query("budget_anew", ANEW, [scope, deadline ?? null]);
  const state = await readBudget(database, scope);
  if (state === undefined) throw new Error("A budget that was just stored is gone.");
  return state;
}

async function beginSuperstep(
  database: Database,
  { threadId, checkpointNs, superstep }: Superstep,
  scopes: readonly string[],
): Promise<Exceeded | undefined> {
  const values = [threadId, checkpointNs, superstep, scopes];
  const [row] = await database.query<{ over: string | null }>("budget_superstep", SUPERSTEP, values);
  return row === undefined || row.over === null ? undefined : exceededOf(row.over);
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
  iterations: "iterations",
  active_ms: "activeMs",
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
  if (row?.made === 1 || row?.known === 1) await database.query("flush", FLUSH, []);
  // Our own reservation may have been committed with its answer lost (G20).
  if (row?.made === 1 || row?.known === 1) return { reserved: true };
  if (row?.leased !== 1) return { lost: "lease" };
  if (row.over === null) return { reserved: true };
  return { exceeded: exceededOf(row.over) };
}

function exceededOf(row: string): Exceeded {
  const over = JSON.parse(row) as Record<"scope" | "what" | "allowed" | "spent" | "reserved" | "requested", string>;
  return {
    scope: over.scope,
    limit: NAMES[over.what] ?? "usd",
    allowed: BigInt(over.allowed),
    spent: BigInt(over.spent),
    reserved: BigInt(over.reserved),
    requested: BigInt(over.requested),
  };
}

async function sweep(database: Database, scopes: readonly string[]): Promise<boolean> {
  return (await database.query("budget_sweep", SWEEP, [scopes])).length > 0;
}
