// Signed requests that came in, by their webhook-id: the same one again gets the same answer.
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

export interface WebhookAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface WebhookReceipt {
  readonly endpoint: string;
  readonly webhookId: string;
  readonly bodyHash: Buffer;
}

// The row is written before anything is decided: of two requests under one id, the one with another body is refused.
const RECEIVE = `
with ${NOW},
old as (delete from {schema}.webhook_receipts r using at where r.received_at < at.now - interval '7 days')
insert into {schema}.webhook_receipts (endpoint, webhook_id, body_hash, received_at)
select $1::text, $2::text, $3::bytea, at.now from at on conflict do nothing`;

/** Notes that it came. @returns what came first under this id */
export async function noteReceived(
  database: Database,
  { endpoint, webhookId, bodyHash }: WebhookReceipt,
): Promise<{ isSame: boolean; answer: WebhookAnswer | undefined }> {
  await database.query("webhook_receive", RECEIVE, [endpoint, webhookId, bodyHash]);
  const [row] = await database.query<{ body_hash: Buffer; answer: WebhookAnswer | null }>(
    "webhook_receipt",
    "select body_hash, answer from {schema}.webhook_receipts where endpoint = $1 and webhook_id = $2",
    [endpoint, webhookId],
  );
  return { isSame: row?.body_hash.equals(bodyHash) ?? true, answer: row?.answer ?? undefined };
}

/** Keeps the answer, unless one is kept. @returns the one that is kept */
export async function keepAnswer(
  database: Database,
  { endpoint, webhookId }: WebhookReceipt,
  answer: WebhookAnswer,
): Promise<WebhookAnswer> {
  const [row] = await database.query<{ answer: WebhookAnswer }>(
    "webhook_answer",
    `update {schema}.webhook_receipts set answer = coalesce(answer, $3::jsonb)
     where endpoint = $1::text and webhook_id = $2::text returning answer`,
    [endpoint, webhookId, JSON.stringify(answer)],
  );
  return row?.answer ?? answer;
}
