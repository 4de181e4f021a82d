// Claiming steps: the intent before a write or a model call, the claim again, the read with its result. Each is one
// statement, so one transaction and one round trip; each checks the thread's lease with a row lock that a takeover
// must wait for (G2), and appends the step's history.
import type { BeginAnswer, BeginOptions, Claim, Refused, RunTicket, StepIntent, StepRecord } from "../core/ledger.js";
import { isHeld, whyRefused } from "./cancels.js";
import type { Database } from "./pool.js";
import { findStep, hexToBytes, NOW } from "./stepRows.js";

// A cancel waits for the lock, and every claim after it finds the run cancelled.
const LEASE = `lease as (
  select t.generation, t.closed_at is not null as closed from {schema}.threads t, at
  where t.thread_id = $2::text and ${isHeld("$3", "at.now")} for share of t
)`;
const COLUMNS = `key, thread_id, generation, epoch, kind, effect, name, version, call_site, node, superstep, checkpoint_ns,
  checkpoint_id, input_hash, input, settle_ms`;
const VALUES = `$1::bytea, $2, lease.generation, $3, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::int, $11::text,
  $12::text, $13::bytea, $14::bytea, $15::bigint`;

/**
 * What a crash of PostgreSQL may take back is what may be done again: a read with its result, and the intent of a model
 * call, do not wait for the disk. The next statement that must not be lost does, and the log is flushed in order, so
 * whatever it builds on is then on disk too (G29).
 */
export const UNHURRIED = "unhurried as (select set_config('synchronous_commit', 'off', true))";
export const IS_UNHURRIED = "(select count(*) from unhurried)::int as unhurried";

const BEGIN_WRITE = `
with ${NOW}, ${LEASE},
-- On its own, so that the thread's index cannot be taken for it: every write would read all the thread's steps.
same as materialized (
  select s.key, s.seq, s.thread_id, s.checkpoint_ns from {schema}.steps s where s.likeness = $18::bigint and s.base_pruned is distinct from 'passed'
),
alike as (
  select same.key, same.seq from same
  where same.thread_id = $2 and same.checkpoint_ns <> $11::text order by same.seq desc limit 3
),
made as (
  insert into {schema}.steps (${COLUMNS}, state, attempt, claim_id, lease_until, likeness, claimed_at, started_at)
  select ${VALUES}, 'RUNNING', 1, $16::uuid, at.now + make_interval(secs => $17::bigint / 1000.0), $19::bigint, at.now, at.now
  from lease, at where not exists (select 1 from alike) and ($20::boolean or not lease.closed)
  on conflict (key) do nothing returning key
)
select (select count(*) from lease)::int as leased, (select count(*) from made)::int as made,
  (select closed from lease) as closed, (select array_agg(encode(key, 'hex') order by seq desc) from alike) as alike`;

const BEGIN_READ = `
with ${NOW}, ${LEASE}, ${UNHURRIED},
made as (
  insert into {schema}.steps (${COLUMNS}, state, attempt, claim_id, lease_until, claimed_at, started_at)
  select ${VALUES}, 'RUNNING', 1, $16::uuid, at.now + make_interval(secs => $17::bigint / 1000.0), at.now, at.now
  from lease, at on conflict (key) do nothing returning key
)
select (select count(*) from lease)::int as leased, (select count(*) from made)::int as made, ${IS_UNHURRIED},
  null::boolean as closed, null::text[] as alike`;

function intentValues({ bodies }: Database, ticket: RunTicket, intent: StepIntent): unknown[] {
  const { position } = intent;
  return [
    hexToBytes(intent.key),
    ticket.threadId,
    ticket.epoch,
    intent.kind,
    intent.effect,
    intent.name,
    intent.version ?? null,
    intent.callSite,
    position.node,
    position.superstep,
    position.checkpointNs,
    position.checkpointId,
    hexToBytes(intent.inputHash),
    intent.input === undefined ? null : bodies.toStored(intent.input),
    intent.settleMs,
  ];
}

interface Begun {
  readonly leased: number;
  readonly made: number;
  readonly closed: boolean | null;
  readonly alike: string[] | null;
}

export async function beginStep(
  database: Database,
  ticket: RunTicket,
  intent: StepIntent,
  claimId: string,
  { alikeAllowed = false, undo = false }: BeginOptions = {},
): Promise<BeginAnswer> {
  const likeness = intent.likeness ?? null;
  const values = [...intentValues(database, ticket, intent), claimId, intent.leaseMs];
  const [row] =
    intent.effect === "read"
      ? await database.query<Begun>("begin_read", BEGIN_READ, values)
      : await database.query<Begun>("begin_write", BEGIN_WRITE, [
          ...values,
          alikeAllowed ? null : likeness,
          likeness,
          undo,
        ]);
  if (row?.made === 1) return { claim: { key: intent.key, attempt: 1, claimId, inDoubt: false, failures: 0 } };
  const answer = await afterClaim(database, ticket, intent.key, claimId, row?.leased === 1);
  if (!("lost" in answer) || row?.leased !== 1) return answer;
  if (row.closed === true) return { closed: true };
  return row.alike !== null ? { alike: row.alike } : answer;
}

const BEGIN_WAITING = `
with ${NOW}, ${LEASE},
made as (
  insert into {schema}.steps (${COLUMNS}, state, attempt, likeness, sibling_key, changes, claimed_at, started_at)
  select ${VALUES}, 'WAITING_HUMAN', 0, $16::bigint, $17::bytea, 1, at.now, at.now from lease, at
  on conflict (key) do nothing returning key
)
insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
select made.key, 1, 0, null, 'WAITING_HUMAN', 'run', $18::text, at.now from made, at returning 1`;

export async function beginWaiting(
  database: Database,
  ticket: RunTicket,
  intent: StepIntent,
  siblingKey: string,
): Promise<Refused | undefined> {
  const reason = `done before, on another branch of the thread: ${siblingKey}`;
  const values = [...intentValues(database, ticket, intent), intent.likeness ?? null, hexToBytes(siblingKey), reason];
  const made = await database.query("begin_waiting", BEGIN_WAITING, values);
  return made.length > 0 ? undefined : whyRefused(database, ticket);
}

/** Zero rows is a question: our own claim may have been committed with its answer lost (G20). */
async function afterClaim(
  database: Database,
  ticket: RunTicket,
  key: string,
  claimId: string,
  leased: boolean,
): Promise<BeginAnswer> {
  const existing = await findStep(database, key);
  if (existing?.claimId === claimId && existing.state === "RUNNING")
    return { claim: claimOf(existing, existing.attempt, claimId) };
  if (!leased) return whyRefused(database, ticket);
  return existing !== undefined ? { existing } : { lost: "lease" };
}

function claimOf({ key, doubtSince, failures }: StepRecord, attempt: number, claimId: string): Claim {
  return { key, attempt, claimId, inDoubt: doubtSince !== undefined, failures };
}

const CLAIM_AGAIN = `
with ${NOW}, ${LEASE},
moved as (
  update {schema}.steps s set state = 'RUNNING', attempt = s.attempt + 1, claim_id = $4::uuid, epoch = $3, claimed_at = at.now,
    lease_until = at.now + make_interval(secs => $5::bigint / 1000.0), input_hash = $6::bytea, input = $7::bytea, due_at = null, ended_at = null,
    could_send_until = case when s.state = 'RUNNING' then greatest(s.could_send_until, s.lease_until) else s.could_send_until end,
    changes = s.changes + 1
  from lease, at where s.key = $1::bytea and s.state = $8 and s.attempt = $9 and (s.effect = 'read' or $11::boolean or not lease.closed) and (s.state <> 'RUNNING' or s.lease_until <= at.now)
  returning s.key, s.attempt, s.changes
),
told as (
  insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
  select moved.key, moved.changes, moved.attempt, $8::text, 'RUNNING', 'run', $10::text, at.now from moved, at
)
select (select count(*) from lease)::int as leased, (select closed from lease) as closed, (select attempt from moved) as attempt`;

export async function claimStepAgain(
  database: Database,
  ticket: RunTicket,
  seen: StepRecord,
  intent: StepIntent,
  claimId: string,
  reason: string,
  { undo = false }: BeginOptions = {},
): Promise<BeginAnswer> {
  const input = intent.input === undefined ? null : database.bodies.toStored(intent.input);
  const said =
    seen.inputHash === intent.inputHash
      ? reason
      : `${reason}; takes another input, as none was sent (was ${seen.inputHash})`;
  const values = [
    hexToBytes(seen.key),
    ticket.threadId,
    ticket.epoch,
    claimId,
    intent.leaseMs,
    hexToBytes(intent.inputHash),
    input,
    seen.state,
    seen.attempt,
    said,
    undo,
  ];
  const [row] = await database.query<ClaimedAgain>("claim_again", CLAIM_AGAIN, values);
  if (typeof row?.attempt === "number") return { claim: claimOf(seen, row.attempt, claimId) };
  const answer = await afterClaim(database, ticket, seen.key, claimId, row?.leased === 1);
  return row?.closed === true && "existing" in answer && answer.existing.state === seen.state
    ? { closed: true }
    : answer;
}

interface ClaimedAgain {
  readonly leased: number;
  readonly closed: boolean | null;
  readonly attempt: number | null;
}

const RECORD_READ = `
with ${NOW}, ${LEASE}, ${UNHURRIED},
made as (
  insert into {schema}.steps (${COLUMNS}, state, attempt, output, claimed_at, started_at, ended_at)
  select ${VALUES}, 'SUCCEEDED', 1, $16::bytea, at.now, at.now - make_interval(secs => $17::float8 / 1000), at.now from lease, at
  on conflict (key) do nothing returning key
)
select (select count(*) from lease)::int as leased, (select count(*) from made)::int as made, ${IS_UNHURRIED}`;

export async function recordRead(
  database: Database,
  ticket: RunTicket,
  intent: StepIntent,
  output: string,
  tookMs: number,
): Promise<{ output: string } | Refused> {
  const [row] = await database.query<{ leased: number; made: number }>("record_read", RECORD_READ, [
    ...intentValues(database, ticket, intent),
    await database.outputs.toStored(output, ticket),
    tookMs,
  ]);
  if (row?.made === 1) return { output };
  const existing = await findStep(database, intent.key);
  if (existing?.output !== undefined) return { output: await existing.output.read() };
  if (row?.leased !== 1) return whyRefused(database, ticket);
  // An equal call of the same run waits in the ledger for a far time: that wait stands, and this answer is good.
  return existing !== undefined ? { output } : { lost: "lease" };
}

// $16: the same place of the graph, whatever the tasks are called. What it took was paid on the other branch.
const REUSE_READ = `
with ${NOW}, ${LEASE}, ${UNHURRIED},
same as materialized (
  select s.key, s.output from {schema}.steps s
  where s.thread_id = $2 and s.effect = 'read' and s.kind = $4 and s.name = $6 and s.call_site = $8 and s.input_hash = $13
    and s.state = 'SUCCEEDED' and s.key <> $1 and regexp_replace(s.checkpoint_ns, ':[^|]*', '', 'g') = $16::text
  order by s.seq desc limit 1
),
made as (
  insert into {schema}.steps (${COLUMNS}, state, attempt, output, changes, claimed_at, started_at, ended_at)
  select ${VALUES}, 'SUCCEEDED', 0, same.output, 1, at.now, at.now, at.now from lease, at, same
  on conflict (key) do nothing returning key
),
told as (
  insert into {schema}.step_changes (key, n, attempt, from_state, to_state, actor, reason, at)
  select made.key, 1, 0, null, 'SUCCEEDED', 'fork', 'reused, its input is equal: ' || encode(same.key, 'hex'), at.now from made, same, at
)
select (select count(*) from lease)::int as leased, same.output, ${IS_UNHURRIED} from (select 1) one left join same on true`;

export async function reuseRead(
  database: Database,
  ticket: RunTicket,
  intent: StepIntent,
): Promise<{ output: string } | Refused | undefined> {
  const place = intent.position.checkpointNs.replaceAll(/:[^|]*/g, "");
  const values = [...intentValues(database, ticket, intent), place];
  const [row] = await database.query<{ leased: number; output: Buffer | null }>("reuse_read", REUSE_READ, values);
  if (row?.leased !== 1) return whyRefused(database, ticket);
  return row.output === null ? undefined : { output: database.bodies.fromStored(row.output) };
}

const RENEW = `
update {schema}.steps s set lease_until = at.now + make_interval(secs => $4::bigint / 1000.0)
from (select {schema}.ledger_now() as now) at
where s.key = $1::bytea and s.attempt = $2 and s.claim_id = $3::uuid and s.state = 'RUNNING' and s.lease_until > at.now returning 1`;

export async function renewStep(database: Database, claim: Claim, leaseMs: number): Promise<boolean> {
  const rows = await database.query("renew_step", RENEW, [
    hexToBytes(claim.key),
    claim.attempt,
    claim.claimId,
    leaseMs,
  ]);
  return rows.length > 0;
}
