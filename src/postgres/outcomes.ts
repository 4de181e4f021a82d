// What becomes of steps: the receipt, the failure, the doubt, the word of a lookup or a person. Every change is a
// compare-and-set on (state, attempt) within the transition table, appends its history, and writes the wake that it
// needs, in one statement.

import type { RecordedFailure } from "../core/errors.js";
import { plainText } from "../core/failure.js";
import type { Claim, Outcome, Settlement, StepRecord } from "../core/ledger.js";
import { IN_PROCESS_WAIT_MS } from "../core/retry.js";
import { mayTransition, sourcesOf } from "../core/step.js";
import type { Database } from "./pool.js";
import { findStep, hexToBytes, NOW } from "./stepRows.js";
import { addUsage, usageValues } from "./usageColumns.js";

const SUCCEED = `
update {schema}.steps s set state = 'SUCCEEDED', output = $4::bytea, ${addUsage(5)}, doubt_since = null,
  first_unresolved_send_at = null, could_send_until = null, lease_until = null, error = null, ended_at = {schema}.ledger_now()
where s.key = $1::bytea and s.attempt = $2 and s.claim_id = $3::uuid and s.state = 'RUNNING' returning 1`;

const END_ATTEMPT = `
with ${NOW},
moved as (
  update {schema}.steps s set state = $4::text, error = $5::jsonb, failures = case when $6::int is null then 0 else s.failures + $6 end, effect_known = s.effect_known or $7::boolean,
    due_at = case when $8::bigint is null then null else at.now + make_interval(secs => $8::bigint / 1000.0) end,
    doubt_since = case when $4 = 'NEEDS_RECONCILIATION' then coalesce(s.doubt_since, at.now) else s.doubt_since end,
    first_unresolved_send_at = case when $4 = 'NEEDS_RECONCILIATION' then coalesce(s.first_unresolved_send_at, s.claimed_at) else s.first_unresolved_send_at end,
    could_send_until = case when $4 = 'NEEDS_RECONCILIATION' then greatest(s.could_send_until, at.now) else s.could_send_until end,
    lease_until = null, ended_at = case when $4 = 'FAILED_PERMANENT' then at.now end, changes = s.changes + 1, ${addUsage(11)}
  from at where s.key = $1::bytea and s.attempt = $2 and s.claim_id = $3::uuid and s.state = 'RUNNING'
  returning s.key, s.thread_id, s.attempt, s.changes, s.due_at
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason) select thread_id, due_at, 'retry' from moved where $10::boolean
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at)
)
insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
select moved.key, moved.changes, moved.attempt, 'RUNNING', $4, 'run', $9::text, at.now from moved, at returning 1`;

export async function endAttempt(database: Database, claim: Claim, outcome: Outcome): Promise<"recorded" | "fenced"> {
  const { outputs } = database;
  const proof = [hexToBytes(claim.key), claim.attempt, claim.claimId];
  const rows =
    outcome.to === "SUCCEEDED"
      ? await database.query("succeed", SUCCEED, [
          ...proof,
          await outputs.toStored(outcome.output, { stepKey: claim.key }),
          ...usageValues(outcome.usage),
        ])
      : await database.query("end_attempt", END_ATTEMPT, [...proof, ...endValues(outcome)]);
  if (rows.length > 0) return "recorded";
  // Our own record may have been committed with its answer lost (G20).
  const seen = await findStep(database, claim.key);
  return seen?.claimId === claim.claimId && seen.attempt === claim.attempt && seen.state === outcome.to
    ? "recorded"
    : "fenced";
}

/** An error as its column keeps it. Its cost has columns of its own. */
export function errorJson(failure: RecordedFailure | undefined): string | null {
  if (failure === undefined) return null;
  const { usage: _, ...error } = failure;
  return JSON.stringify(error);
}

function endValues(outcome: Exclude<Outcome, { to: "SUCCEEDED" }>): unknown[] {
  const { failure } = outcome;
  // Control flow is no failure: the retry cap counts what went wrong. A read that was given up starts anew with its next run.
  const counted = outcome.to === "READY" || failure === undefined ? 0 : 1;
  const givenUp = outcome.to === "READY" && outcome.givenUp === true;
  const failures = givenUp ? null : outcome.to === "RETRY_SCHEDULED" ? (outcome.failures ?? counted) : counted;
  const effectKnown = outcome.to === "NEEDS_RECONCILIATION" && outcome.effectKnown === true;
  const dueInMs = outcome.to === "READY" || outcome.to === "FAILED_PERMANENT" ? null : (outcome.dueInMs ?? null);
  const reason =
    outcome.to === "READY"
      ? outcome.reason
      : failure === undefined
        ? null
        : plainText(`${failure.name}: ${failure.message}`, 500);
  const wake = dueInMs !== null && dueInMs > IN_PROCESS_WAIT_MS;
  return [outcome.to, errorJson(failure), failures, effectKnown, dueInMs, reason, wake, ...usageValues(failure?.usage)];
}

const SETTLE = `
with ${NOW},
moved as (
  update {schema}.steps s set state = $4::text, output = coalesce($5::bytea, s.output), error = coalesce($6::jsonb, s.error),
    lookups = s.lookups + $7::int, failures = case when $2 = 'FAILED_PERMANENT' then 0 else s.failures end,
    due_at = case when $8::bigint is null then null else at.now + make_interval(secs => $8::bigint / 1000.0) end,
    doubt_since = case when $4 in ('NEEDS_RECONCILIATION', 'WAITING_HUMAN') then coalesce(s.doubt_since, at.now) end,
    first_unresolved_send_at = case when $4 in ('NEEDS_RECONCILIATION', 'WAITING_HUMAN') then coalesce(s.first_unresolved_send_at, s.claimed_at) end,
    could_send_until = case when $4 in ('NEEDS_RECONCILIATION', 'WAITING_HUMAN') then greatest(s.could_send_until, s.lease_until) end,
    lease_until = null,
    ended_at = case when $4 in ('SUCCEEDED', 'FAILED_PERMANENT') then at.now when $4 in ('COMPENSATING', 'COMPENSATED') then s.ended_at end,
    changes = s.changes + 1
  from at where s.key = $1::bytea and s.state = $2 and s.attempt = $3 and (s.state <> 'RUNNING' or s.lease_until <= at.now)
  returning s.key, s.thread_id, s.attempt, s.changes, s.due_at
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason)
  select moved.thread_id, coalesce(moved.due_at, at.now), $10::text from moved, at where $11::boolean
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
)
insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
select moved.key, moved.changes, moved.attempt, $2, $4, $9::text, $10, at.now from moved, at returning 1`;

/** False when the step has moved on. */
export async function settleStep(database: Database, seen: StepRecord, settlement: Settlement): Promise<boolean> {
  const { to, actor, reason, output, failure, dueInMs, countLookup = false, wake = false } = settlement;
  if (!mayTransition(seen.state, to)) return false;
  const rows = await database.query("settle", SETTLE, [
    hexToBytes(seen.key),
    seen.state,
    seen.attempt,
    to,
    output === undefined ? null : await database.outputs.toStored(output, { threadId: seen.position.threadId }),
    errorJson(failure),
    countLookup ? 1 : 0,
    dueInMs === undefined ? null : Math.ceil(dueInMs),
    plainText(actor, 200),
    plainText(reason, 500),
    wake,
  ]);
  return rows.length > 0;
}

const LATE = `
with ${NOW},
moved as (
  update {schema}.steps s set state = 'SUCCEEDED', output = $3::bytea, doubt_since = null, first_unresolved_send_at = null,
    could_send_until = null, lease_until = null, due_at = null, ended_at = at.now, changes = s.changes + 1
  from at where s.key = $1::bytea and s.state = any($4::text[]) returning s.key, s.changes
),
told as (
  insert into {schema}.step_changes (key, n, attempt, to_state, actor, reason, at)
  select moved.key, moved.changes, $2::int, 'SUCCEEDED', 'run', 'a receipt that came late', at.now from moved, at
),
undone as (
  -- A thread that is being undone has one more effect to undo (G23).
  insert into {schema}.wakes as w (thread_id, due_at, reason)
  select s.thread_id, at.now, 'a late receipt to undo' from moved, at, {schema}.steps s join {schema}.threads t using (thread_id)
  where s.key = moved.key and t.closed_at is not null
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
),
kept as (
  insert into {schema}.late_receipts (key, attempt, output, differs, at)
  select s.key, $2, $3, s.output is distinct from $3, at.now from {schema}.steps s, at
  where s.key = $1 and not exists (select 1 from moved) on conflict do nothing
),
-- Its thread was deleted: that it happened is all that is kept.
audited as (
  update {schema}.deleted_effects d set late_success_at = coalesce(d.late_success_at, at.now) from at where d.key = $1
)
select (select count(*) from moved)::int as moved`;

/** A success is a fact: accepted from any attempt while the step is not final, else kept as evidence (G21). */
export async function recordLateSuccess(
  database: Database,
  claim: Claim,
  output: string,
): Promise<"accepted" | "kept as evidence"> {
  const open = sourcesOf("SUCCEEDED");
  // Equal receipts are told from different ones by their bytes, which an encryption makes differ.
  const known = database.bodies.encoding ? await findStep(database, claim.key) : undefined;
  if (known?.state === "SUCCEEDED" && (await known.output?.read()) === output) return "kept as evidence";
  const stored = await database.outputs.toStored(output, { stepKey: claim.key });
  const values = [hexToBytes(claim.key), claim.attempt, stored, open];
  const [row] = await database.query<{ moved: number }>("late_success", LATE, values);
  return row?.moved === 1 ? "accepted" : "kept as evidence";
}

const NOTE_DRIFT = `
with ${NOW},
moved as (
  update {schema}.steps s set drift_hash = $3::bytea, drift_decision = null, changes = s.changes + 1
  where s.key = $1::bytea and s.attempt = $2 and s.drift_hash is distinct from $3 returning s.key, s.attempt, s.state, s.changes
)
insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
select moved.key, moved.changes, moved.attempt, moved.state, moved.state, 'run', $4::text, at.now from moved, at`;

/** Notes another input at a known key, or with `undefined` that the recorded one is back. */
export async function noteDrift(database: Database, seen: StepRecord, inputHash: string | undefined): Promise<void> {
  const reason =
    inputHash === undefined ? "the recorded input is back" : `another input came to this key: ${inputHash}`;
  const hash = inputHash === undefined ? null : hexToBytes(inputHash);
  await database.query("note_drift", NOTE_DRIFT, [hexToBytes(seen.key), seen.attempt, hash, reason]);
}

const DECIDE_DRIFT = `
with ${NOW},
moved as (
  update {schema}.steps s set drift_decision = $2::text, changes = s.changes + 1
  where s.key = $1::bytea and s.drift_hash is not null and s.drift_decision is null returning s.key, s.thread_id, s.attempt, s.state, s.changes
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason) select moved.thread_id, at.now, 'drift decided' from moved, at
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
)
insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
select moved.key, moved.changes, moved.attempt, moved.state, moved.state, $3::text, $4::text, at.now from moved, at returning 1`;

/** A person's word on another input at a known key. False when none is asked for. */
export async function decideDrift(
  database: Database,
  key: string,
  decision: "keep" | "fail",
  by: string,
  reason: string,
): Promise<boolean> {
  const rows = await database.query("decide_drift", DECIDE_DRIFT, [
    hexToBytes(key),
    decision,
    plainText(by, 200),
    plainText(reason, 500),
  ]);
  return rows.length > 0;
}
