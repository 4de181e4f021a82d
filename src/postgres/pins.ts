// Which version of a tool a thread is held to, and what each version means.
import { plainText } from "../core/failure.js";
import { canonicalJson } from "../core/key.js";
import type { Refused, RunTicket } from "../core/ledger.js";
import type { PinLedger, PinMove, Pinned, PinState, ToolShape } from "../core/version.js";
import { isHeld, whyRefused } from "./cancels.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";

const LEASE = `lease as (
  select 1 from {schema}.threads t, at where t.thread_id = $1::text and ${isHeld("$2", "at.now")} for share of t
)`;

// A thread that had steps before it had pins is held to the version that it used last.
const PIN = `
with ${NOW}, ${LEASE},
registered as (
  insert into {schema}.tool_versions (namespace, name, version, fingerprint, shape, registered_at)
  select $3::text, $5::text, $6::text, $7::bytea, $8::text, at.now from lease, at where $4::text = 'tool'
  on conflict do nothing returning 1
),
known as (select p.* from {schema}.pins p where p.thread_id = $1 and p.kind = $4 and p.name = $5),
used as (
  select s.version from {schema}.steps s
  where $4 = 'tool' and s.thread_id = $1 and s.name = $5 and s.version is not null and not exists (select 1 from known)
  order by s.seq desc limit 1
),
made as (
  insert into {schema}.pins (thread_id, kind, name, version, pinned_at, pinned_by)
  select $1, $4, $5, coalesce((select version from used), $6), at.now, 'run' from lease, at where not exists (select 1 from known)
  on conflict do nothing returning version
),
held as (select version, kept_against, moved_from from known union all select version, null, null from made)
select (select count(*) from lease)::int as leased, held.version, held.kept_against, held.moved_from, own.fingerprint, own.shape as own_shape,
  was.shape as was_shape
from (select 1) one left join held on true
  left join {schema}.tool_versions own on own.namespace = $3 and own.name = $5 and own.version = $6
  left join {schema}.tool_versions was on was.namespace = $3 and was.name = $5 and was.version = held.version`;

interface PinRow {
  readonly leased: number;
  readonly version: string | null;
  readonly kept_against: string | null;
  readonly moved_from: string | null;
  readonly fingerprint: Buffer | null;
  readonly own_shape: string | null;
  readonly was_shape: string | null;
}

async function pin(
  database: Database,
  namespace: string,
  ticket: RunTicket,
  pinned: Pinned,
): Promise<PinState | Refused> {
  const { kind, name, version, fingerprint = "", shape } = pinned;
  const values = [
    ticket.threadId,
    ticket.epoch,
    namespace,
    kind,
    name,
    version,
    hexToBytes(fingerprint),
    shape && canonicalJson(shape),
  ];
  const [row] = await database.query<PinRow>("pin", PIN, values);
  if (row?.leased !== 1) return whyRefused(database, ticket);
  // Another call of the run has pinned it at this moment.
  if (row.version === null) return pin(database, namespace, ticket, pinned);
  return {
    version: row.version,
    shape: row.was_shape === null ? undefined : (JSON.parse(row.was_shape) as ToolShape),
    keptAgainst: row.kept_against ?? undefined,
    movedFrom: row.moved_from ?? undefined,
    registered:
      row.fingerprint === null || row.own_shape === null
        ? undefined
        : { fingerprint: row.fingerprint.toString("hex"), shape: JSON.parse(row.own_shape) as ToolShape },
  };
}

// What was asked of people about the tool as it was is asked anew where what they said is not used yet.
const MOVE = `
with ${NOW}, ${LEASE},
moved as (
  update {schema}.pins p set version = case when $7::text = 'kept' then p.version else $6::text end,
    kept_against = case when $7 = 'kept' then $6 end,
    moved_from = case when $7 in ('migrated', 'accepted') then $5::text else p.moved_from end, pinned_at = at.now, pinned_by = $9::text
  from lease, at where p.thread_id = $1 and p.kind = $3::text and p.name = $4::text and p.version = $5
    and p.kept_against is distinct from $6
  returning 1
),
stale as (
  update {schema}.approvals a set status = 'superseded' from moved
  where $7 in ('migrated', 'accepted') and a.thread_id = $1 and a.action = $4 and a.used_at is null
    and a.status in ('pending', 'approved', 'edited')
  returning a.id
),
told as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select stale.id, 'superseded', 'run', 'the tool has another version now', at.now from stale, at
)
insert into {schema}.pin_events (thread_id, kind, name, from_version, to_version, verdict, detail, by_whom, at)
select $1, $3, $4, $5, $6, $7, $8::text, $9, at.now from moved, at`;

async function move(database: Database, ticket: RunTicket, change: PinMove): Promise<void> {
  const { kind, name, from, to, verdict, detail, by } = change;
  await database.query("pin_move", MOVE, [
    ticket.threadId,
    ticket.epoch,
    kind,
    name,
    from,
    to,
    verdict,
    plainText(detail, 2000),
    plainText(by, 200),
  ]);
}

const ASKED = `
select distinct p.name, a.id as "approvalId" from {schema}.approvals a
join {schema}.pins p on p.thread_id = a.thread_id and p.kind = 'tool' and p.name = a.action
where a.thread_id = $1 and a.used_at is null and a.status in ('pending', 'approved', 'edited')`;

export function createPins(database: Database, namespace: string): PinLedger {
  return {
    pin: (ticket, pinned) => pin(database, namespace, ticket, pinned),
    move: (ticket, change) => move(database, ticket, change),
    askedAbout: (ticket) => database.query("pins_asked", ASKED, [ticket.threadId]),
  };
}
