// Webhook endpoints: their settings, and how their messages fare. Secrets leave this file only to sign and to verify.
import type { WebhookSettings } from "../core/webhookOptions.js";
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

const SAVE = `
with ${NOW}
insert into {schema}.webhooks as w (name, url, secrets, kinds, allow_private, include_args, link, decides, vouches_for, roles, created_at, updated_at)
select $1::text, $2::text, $3::bytea, $4::text[], $5::boolean, $6::boolean, $7::text, $8::boolean, $9::text[], $10::text[], at.now, at.now from at
on conflict (name) do update set url = excluded.url, secrets = excluded.secrets, kinds = excluded.kinds, allow_private = excluded.allow_private,
  include_args = excluded.include_args, link = excluded.link, decides = excluded.decides, vouches_for = excluded.vouches_for,
  roles = excluded.roles, updated_at = excluded.updated_at`;

/** Makes the endpoint, or puts these settings in the place of what was known under its name. */
export async function saveWebhook(
  database: Database,
  webhook: WebhookSettings & { readonly secrets: readonly string[] },
): Promise<void> {
  await database.query("webhook_save", SAVE, [
    webhook.name,
    webhook.url ?? null,
    database.bodies.toStored(JSON.stringify(webhook.secrets)),
    webhook.kinds,
    webhook.allowPrivate,
    webhook.includeArgs,
    webhook.link ?? null,
    webhook.decides,
    webhook.vouchesFor,
    webhook.roles,
  ]);
}

/** With its messages, and those that still wait. @returns whether there was one */
export async function removeWebhook(database: Database, name: string): Promise<boolean> {
  const rows = await database.query("webhook_remove", "delete from {schema}.webhooks where name = $1 returning name", [
    name,
  ]);
  return rows.length > 0;
}

interface WebhookRow {
  readonly name: string;
  readonly url: string | null;
  readonly kinds: string[];
  readonly allow_private: boolean;
  readonly include_args: boolean;
  readonly link: string | null;
  readonly decides: boolean;
  readonly vouches_for: string[];
  readonly roles: string[];
}
const COLUMNS = "w.name, w.url, w.kinds, w.allow_private, w.include_args, w.link, w.decides, w.vouches_for, w.roles";

/** An endpoint as operators see it. */
export interface Webhook extends WebhookSettings {
  /** Messages that are still to be sent. */
  readonly waiting: number;
  /** Messages of the last month that were not to be delivered in three days. */
  readonly givenUp: number;
  /** Of the latest attempt that failed. */
  readonly lastError: string | undefined;
}

const LIST = `
select ${COLUMNS}, o.waiting, o.given_up, o.last_error
from {schema}.webhooks w cross join lateral (
  select count(*) filter (where due_at is not null)::int as waiting, count(*) filter (where given_up_at is not null)::int as given_up,
    (array_agg(last_error order by created_at desc) filter (where last_error is not null))[1] as last_error
  from {schema}.outbox where endpoint = w.name) o
order by w.name`;

export async function readWebhooks(database: Database): Promise<Webhook[]> {
  const rows = await database.query<WebhookRow & { waiting: number; given_up: number; last_error: string | null }>(
    "webhooks",
    LIST,
    [],
  );
  return rows.map((row) => ({
    ...toSettings(row),
    waiting: row.waiting,
    givenUp: row.given_up,
    lastError: row.last_error ?? undefined,
  }));
}

/** An endpoint with what signs for it. */
export interface SigningWebhook {
  readonly settings: WebhookSettings;
  /** @throws BodyCodecError where they were stored through a codec that is not here. */
  secrets(): string[];
  /** The ledger's clock when this was read. */
  readonly readAt: Date;
}

export async function findWebhook(database: Database, name: string): Promise<SigningWebhook | undefined> {
  const [row] = await database.query<WebhookRow & { secrets: Buffer; read_at: Date }>(
    "webhook",
    `select ${COLUMNS}, w.secrets, {schema}.ledger_now() as read_at from {schema}.webhooks w where w.name = $1`,
    [name],
  );
  if (row === undefined) return undefined;
  return { settings: toSettings(row), secrets: () => readSecrets(database, row.secrets), readAt: row.read_at };
}

/** @internal */
export function readSecrets(database: Database, stored: Buffer): string[] {
  return JSON.parse(database.bodies.fromStored(stored)) as string[];
}

function toSettings(row: WebhookRow): WebhookSettings {
  return {
    name: row.name,
    url: row.url ?? undefined,
    kinds: row.kinds,
    allowPrivate: row.allow_private,
    includeArgs: row.include_args,
    link: row.link ?? undefined,
    decides: row.decides,
    vouchesFor: row.vouches_for,
    roles: row.roles,
  };
}
