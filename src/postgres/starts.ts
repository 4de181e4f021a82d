// Threads that were ordered with their input: the order, its thread and its wake are one transaction, so what was
// acknowledged is run, and the same event or the same thread is ordered once.
import type { Database } from "./pool.js";
import { hexToBytes } from "./stepRows.js";

export interface StartOrder {
  readonly threadId: string;
  /** New for every call; a statement that is sent again has the same. */
  readonly orderId: string;
  readonly source: string | undefined;
  readonly eventId: string | undefined;
  readonly graph: string;
  readonly inputHash: string;
  readonly input: string;
  readonly tenant: string | undefined;
  /** The name under which a worker finds the graph. */
  readonly graphName: string | undefined;
}

/** An order that was there before. */
export interface EarlierStart {
  readonly threadId: string;
  readonly source: string | undefined;
  readonly eventId: string | undefined;
  readonly graph: string;
  readonly inputHash: string;
}

const ORDER = `
with at as materialized (select {schema}.ledger_now() as now),
made as (
  insert into {schema}.starts (thread_id, order_id, source, event_id, graph, input_hash, input, tenant, created_at)
  select $1::text, $2::uuid, $3::text, $4::text, $5::text, $6::bytea, $7::bytea, $8::text, at.now from at
  where not exists (select from {schema}.threads t where t.thread_id = $1 and t.deleted_at is null)
  on conflict do nothing returning thread_id
),
thread as (
  insert into {schema}.threads as t (thread_id, state, created_at, updated_at, graph) select made.thread_id, 'due', at.now, at.now, $9::text from made, at
  on conflict (thread_id) do update set state = 'due', updated_at = excluded.updated_at, graph = excluded.graph, deleted_at = null, deleted_by = null
  where t.deleted_at is not null
),
woken as (
  insert into {schema}.wakes as w (thread_id, due_at, reason) select made.thread_id, at.now, 'started' from made, at
  on conflict (thread_id) do update set due_at = least(w.due_at, excluded.due_at), reason = excluded.reason
),
told as (
  insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at)
  select made.thread_id, 'started', coalesce($3, 'startRun'), $4, at.now from made, at
)
select 1 from made`;

const EARLIER = `
select coalesce(thread_id, deleted_thread_id) as thread_id, source, event_id, graph, encode(input_hash, 'hex') as input_hash, order_id = $2::uuid as own from {schema}.starts
where thread_id = $1 or (source = $3::text and event_id = $4::text)
order by own desc, coalesce(source = $3 and event_id = $4, false) desc limit 1`;

/** "known": a thread of that name has run, and nobody ordered it. */
export async function orderStart(database: Database, order: StartOrder): Promise<"made" | "known" | EarlierStart> {
  const {
    threadId,
    orderId,
    source = null,
    eventId = null,
    graph,
    inputHash,
    input,
    tenant = null,
    graphName = null,
  } = order;
  const stored = [graph, hexToBytes(inputHash), database.bodies.toStored(input), tenant, graphName];
  const made = await database.query("order_start", ORDER, [threadId, orderId, source, eventId, ...stored]);
  if (made.length > 0) return "made";
  const [row] = await database.query<{
    thread_id: string;
    source: string | null;
    event_id: string | null;
    graph: string;
    input_hash: string;
    own: boolean;
  }>("earlier_start", EARLIER, [threadId, orderId, source, eventId]);
  if (row === undefined) return "known";
  if (row.own) return "made";
  const { thread_id, event_id, input_hash } = row;
  return {
    threadId: thread_id,
    source: row.source ?? undefined,
    eventId: event_id ?? undefined,
    graph: row.graph,
    inputHash: input_hash,
  };
}

/** The input that a thread was ordered with. */
export async function orderedInput(
  database: Database,
  threadId: string,
): Promise<{ input: string; inputHash: string } | undefined> {
  const [row] = await database.query<{ input: Buffer; input_hash: string }>(
    "ordered_input",
    "select input, encode(input_hash, 'hex') as input_hash from {schema}.starts where thread_id = $1",
    [threadId],
  );
  return row && { input: database.bodies.fromStored(row.input), inputHash: row.input_hash };
}
