// Messages on their way: who delivers claims what is due for a while, and says what came of it. A deliverer that dies says
// nothing, and its messages are due again when the while is over.
import { randomUUID } from "node:crypto";
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";
import { readSecrets } from "./webhooks.js";

/** Three times what an attempt may take: whoever still works on it after that is gone, or stands still. */
const CLAIM_MS = 30_000;
/** So many messages of one endpoint at once: one that does not answer must not keep the others waiting. */
const PER_ENDPOINT = 5;
const PER_CLAIM = 50;

export interface OutboxMessage {
  readonly id: string;
  readonly claimId: string;
  readonly kind: string;
  readonly approvalId: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  /** This one included. */
  readonly attempts: number;
  readonly url: string | undefined;
  readonly allowPrivate: boolean;
  readonly includeArgs: boolean;
  readonly link: string | undefined;
  /** @throws BodyCodecError where they were stored through a codec that is not here. */
  secrets(): string[];
  readonly claimedAt: Date;
}

// Endpoints come in any order: none is always served last.
const CLAIM = `
with ${NOW},
due as materialized (
  select o.id from at, (select name from {schema}.webhooks order by random()) w cross join lateral (
    select o.id from {schema}.outbox o where o.endpoint = w.name and o.due_at <= at.now order by o.due_at limit ${PER_ENDPOINT}
    for update of o skip locked) o
  limit ${PER_CLAIM}
),
claimed as (
  update {schema}.outbox o set due_at = at.now + make_interval(secs => ${CLAIM_MS / 1000}), claim_id = $1::uuid, attempts = o.attempts + 1
  from due, at where o.id = due.id returning o.*
)
select c.id, c.kind, c.approval_id, c.payload, c.created_at, c.attempts, w.url, w.allow_private, w.include_args, w.link, w.secrets, at.now
from claimed c join {schema}.webhooks w on w.name = c.endpoint, at`;

interface ClaimedRow {
  readonly id: string;
  readonly kind: string;
  readonly approval_id: string;
  readonly payload: Record<string, unknown>;
  readonly created_at: Date;
  readonly attempts: number;
  readonly url: string | null;
  readonly allow_private: boolean;
  readonly include_args: boolean;
  readonly link: string | null;
  readonly secrets: Buffer;
  readonly now: Date;
}

export async function claimMessages(database: Database): Promise<OutboxMessage[]> {
  const claimId = randomUUID();
  const rows = await database.query<ClaimedRow>("outbox_claim", CLAIM, [claimId]);
  return rows.map((row) => ({
    id: row.id,
    claimId,
    kind: row.kind,
    approvalId: row.approval_id,
    payload: row.payload,
    createdAt: row.created_at,
    attempts: row.attempts,
    url: row.url ?? undefined,
    allowPrivate: row.allow_private,
    includeArgs: row.include_args,
    link: row.link ?? undefined,
    secrets: () => readSecrets(database, row.secrets),
    claimedAt: row.now,
  }));
}

/** It arrived: true also when another has claimed it since. */
export async function noteSent(database: Database, id: string): Promise<void> {
  await database.query(
    "outbox_sent",
    `with ${NOW} update {schema}.outbox o set sent_at = at.now, due_at = null, given_up_at = null, last_error = null
     from at where o.id = $1::uuid and o.sent_at is null`,
    [id],
  );
}

/** It did not arrive, or nobody knows: again in `retryMs`, or, without it, never. */
export async function noteUnsent(
  database: Database,
  { id, claimId }: Pick<OutboxMessage, "id" | "claimId">,
  why: string,
  retryMs: number | undefined,
): Promise<void> {
  await database.query(
    "outbox_unsent",
    `with ${NOW} update {schema}.outbox o set last_error = $3::text, due_at = at.now + make_interval(secs => $4::float8 / 1000),
       given_up_at = case when $4 is null then at.now end
     from at where o.id = $1::uuid and o.claim_id = $2::uuid and o.due_at is not null`,
    [id, claimId, why, retryMs ?? null],
  );
}

/** The attempt was broken off here, and says nothing about the endpoint: another deliverer may have it at once. */
export async function giveBack(database: Database, { id, claimId }: OutboxMessage): Promise<void> {
  await database.query(
    "outbox_give_back",
    `with ${NOW} update {schema}.outbox o set due_at = at.now, attempts = o.attempts - 1
     from at where o.id = $1::uuid and o.claim_id = $2::uuid and o.due_at is not null`,
    [id, claimId],
  );
}

/** Messages that were given up are sent again, from the first attempt. @returns how many */
export async function retryGivenUp(database: Database, endpoint: string): Promise<number> {
  const rows = await database.query(
    "outbox_retry",
    `with ${NOW} update {schema}.outbox o set due_at = at.now, given_up_at = null, attempts = 0
     from at where o.endpoint = $1::text and o.given_up_at is not null returning o.id`,
    [endpoint],
  );
  return rows.length;
}

/** Deletes what is long over. */
export async function pruneOutbox(database: Database): Promise<void> {
  await database.query(
    "outbox_prune",
    `with ${NOW} delete from {schema}.outbox o using at where o.due_at is null and coalesce(o.sent_at, o.given_up_at) < at.now - interval '7 days'
       and (o.given_up_at is null or o.given_up_at < at.now - interval '30 days')`,
    [],
  );
}

/** By endpoint: messages that nobody has tried to deliver for over a minute, and those that were given up. */
export interface Undelivered {
  readonly endpoint: string;
  readonly overdue: number;
  readonly givenUp: number;
}

export async function undelivered(database: Database): Promise<Undelivered[]> {
  return database.query<Undelivered>(
    "outbox_undelivered",
    `with ${NOW} select o.endpoint, count(*) filter (where o.given_up_at is null)::int as overdue,
       count(*) filter (where o.given_up_at is not null)::int as "givenUp"
     from {schema}.outbox o, at where o.given_up_at is not null or o.due_at < at.now - interval '1 minute'
     group by o.endpoint order by o.endpoint`,
    [],
  );
}
