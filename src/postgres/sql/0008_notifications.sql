-- Notifications: who is told of requests for approval, what is still to be told them, and what was heard from them.

-- One row an endpoint. Written and deleted by operators alone.
create table {schema}.webhooks (
  name text primary key,
  -- Where messages go; null for an endpoint that only decides.
  url text,
  -- A JSON list of secrets, kept as bodies are kept. Messages are signed with each of them.
  secrets bytea not null,
  -- What it is told of.
  kinds text[] not null,
  -- Plain http, and addresses that are not public.
  allow_private boolean not null,
  -- Arguments, descriptions and comments go along.
  include_args boolean not null,
  -- Where people look at a request: an address with {id} in it.
  link text,
  -- Its signed requests may decide: in the names of those it vouches for (`*`: of everybody), with these roles.
  decides boolean not null,
  vouches_for text[] not null,
  roles text[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- One row a message and endpoint. Written by the trigger below, in the transaction of what it tells of; then by who delivers.
-- Deleted a week after it was sent, a month after it was given up, and with its endpoint.
create table {schema}.outbox (
  -- Of the message, in every attempt: receivers tell a repeat by it.
  id uuid primary key default gen_random_uuid(),
  endpoint text not null references {schema}.webhooks on delete cascade,
  kind text not null,
  approval_id text not null,
  thread_id text not null,
  payload jsonb not null,
  created_at timestamptz not null,
  -- The next attempt; while one is made, the moment from which it counts as lost. Null at the end.
  due_at timestamptz,
  -- Of the attempt that is being made.
  claim_id uuid,
  attempts integer not null default 0,
  sent_at timestamptz,
  given_up_at timestamptz,
  last_error text,
  constraint waits_or_ended check (num_nonnulls(due_at, sent_at, given_up_at) = 1)
) with (fillfactor = 80);
-- Who delivers: what is due, endpoint by endpoint.
create index outbox_due on {schema}.outbox (endpoint, due_at) where due_at is not null;
-- Deleting what is long over; and what was given up.
create index outbox_ended on {schema}.outbox (coalesce(sent_at, given_up_at)) where due_at is null;

-- One row a signed request that came in: the same one again gets the same answer. Written by who answers; deleted after a
-- week, and with its endpoint.
create table {schema}.webhook_receipts (
  endpoint text not null references {schema}.webhooks on delete cascade,
  webhook_id text not null,
  body_hash bytea not null,
  -- {"status", "body"}; null while the first one is answered.
  answer jsonb,
  received_at timestamptz not null,
  primary key (endpoint, webhook_id)
);
create index webhook_receipts_by_age on {schema}.webhook_receipts (received_at);

-- The message is written with the event, whichever statement writes that. The row of an endpoint is locked before it is
-- referred to: one that is removed at this moment is skipped, and fails no decision.
create function {schema}.tell_webhooks() returns trigger language plpgsql as {quote}
begin
  insert into {schema}.outbox (endpoint, kind, approval_id, thread_id, payload, created_at, due_at)
  select w.name, new.kind, a.id, a.thread_id, jsonb_strip_nulls(jsonb_build_object(
    'approvalId', a.id, 'threadId', a.thread_id, 'node', a.node, 'toolCallId', a.tool_call_id, 'action', a.action,
    'status', a.status, 'approvers', a.approvers, 'onTimeout', a.on_timeout, 'by', new.by_whom,
    'requestedAt', extract(epoch from a.requested_at) * 1000, 'deadlineAt', extract(epoch from a.deadline_at) * 1000,
    'decidedAt', extract(epoch from a.decided_at) * 1000)), new.at, new.at
  from {schema}.webhooks w join {schema}.approvals a on a.id = new.approval_id
  where w.url is not null and new.kind = any(w.kinds)
  for key share of w;
  return null;
end
{quote};
create trigger tell_webhooks after insert on {schema}.approval_events for each row
  when (new.kind in ('requested', 'warned', 'escalated', 'approved', 'rejected', 'edited', 'expired', 'superseded', 'cancelled'))
  execute function {schema}.tell_webhooks();
