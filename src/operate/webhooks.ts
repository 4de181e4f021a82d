// Notifications, from any process of the ledger: who is told of requests for approval, sending what is due, and deciding by
// a signed request.
import { NotFoundError } from "../core/errors.js";
import { checkName, checkWebhook, type WebhookOptions, type WebhookSettings } from "../core/webhookOptions.js";
import { LEDGER_PARTS, type Ledger } from "../langgraph/ledger.js";
import { type Delivered, deliverDue } from "../notify/deliver.js";
import { type ReceiveOptions, receiveDecision } from "../notify/receive.js";
import { type Sent, sendWebhook } from "../notify/send.js";
import { databaseOf } from "../openLedger.js";
import { retryGivenUp } from "../postgres/outbox.js";
import { findWebhook, readWebhooks, removeWebhook as remove, saveWebhook, type Webhook } from "../postgres/webhooks.js";

/**
 * Has an endpoint told of requests for approval, from now on, by webhooks signed as Standard Webhooks has it; or lets it
 * decide. A name that is known takes the new settings.
 *
 * A message is written in the transaction of what it tells of, and sent by `deliverOutbox`: at least once, under one
 * `webhook-id`. It is tried for about three days.
 *
 * @throws InvalidOptionError for settings that cannot be, such as an address that is not public without `allowPrivate`.
 * @example
 * await registerWebhook(ledger, { name: "pager", url: "https://ops.example/hook", secret, kinds: ["requested", "escalated"] });
 */
export async function registerWebhook(ledger: Ledger, options: WebhookOptions): Promise<WebhookSettings> {
  const { secrets, ...settings } = checkWebhook(options);
  await saveWebhook(await databaseOf(ledger), { ...settings, secrets });
  return settings;
}

/** The endpoints, without their secrets, and how their messages fare. */
export async function webhooksOf(ledger: Ledger): Promise<Webhook[]> {
  return readWebhooks(await databaseOf(ledger));
}

/** Forgets an endpoint, and the messages that wait for it. @returns whether there was one */
export async function removeWebhook(ledger: Ledger, name: string): Promise<boolean> {
  return remove(await databaseOf(ledger), checkName(name));
}

/** Sends again, from the first attempt, what was given up. @returns how many messages */
export async function retryWebhook(ledger: Ledger, name: string): Promise<number> {
  return retryGivenUp(await databaseOf(ledger), checkName(name));
}

/**
 * Sends one message of the type `test` now, past the outbox.
 *
 * @throws NotFoundError for a name that is not known, or one without an address.
 */
export async function testWebhook(ledger: Ledger, name: string): Promise<Sent> {
  const webhook = await findWebhook(await databaseOf(ledger), checkName(name));
  const { url, allowPrivate } = webhook?.settings ?? {};
  if (webhook === undefined || url === undefined || allowPrivate === undefined)
    throw new NotFoundError(`No webhook "${name}" with an address. List them: longhaul webhooks list`);
  const body = JSON.stringify({ type: "test", timestamp: webhook.readAt, data: { webhook: name } });
  const id = `msg_test_${crypto.randomUUID().replaceAll("-", "")}`;
  return sendWebhook({ url, allowPrivate, secrets: webhook.secrets(), id, at: webhook.readAt, body });
}

/**
 * Sends what is due, and returns when nothing is. A worker and `sweepHere` do so by themselves; without them call it in a
 * loop, beside other work: an endpoint that does not answer holds it up for ten seconds. Any number of processes may do so at once; what one leaves behind when it dies is due
 * again after half a minute.
 *
 * When the signal fires, what is under way is broken off and is due at once.
 *
 * @example
 * while (!signal.aborted) {
 *   await deliverOutbox(ledger, { signal });
 *   await setTimeout(1000);
 * }
 */
export async function deliverOutbox(ledger: Ledger, { signal }: { signal?: AbortSignal } = {}): Promise<Delivered> {
  return deliverDue(await databaseOf(ledger), signal);
}

/**
 * Decides by a request that a registered endpoint signed (`decides`): a POST of `{ approvalId, decision, by? }`, with
 * `decision` as `decide` takes it. Mount it under a path whose last part is the endpoint's name.
 *
 * Who decides is `webhook:NAME`, or `by` where the endpoint is trusted with it (`decides.as`). One `webhook-id` is one
 * decision: sent again it gets the same answer, and with another body it is refused.
 *
 * Answers 200 with `result` `applied` or `already-decided`; 401 for a signature that does not fit or is old; 403, 404, 400
 * and 409 as `decide` throws; 503 when it is worth another attempt. Never throws.
 *
 * @example
 * app.post("/webhooks/:name", (context) => decideByWebhook(ledger, context.req.raw));
 */
export async function decideByWebhook(
  ledger: Ledger,
  request: Request,
  options: ReceiveOptions = {},
): Promise<Response> {
  const open = async () => ({
    database: await databaseOf(ledger),
    approvals: (await ledger[LEDGER_PARTS].open()).approvals,
  });
  const parts = await open().catch(() => undefined);
  if (parts === undefined) return Response.json({ error: "UNAVAILABLE" }, { status: 503 });
  return receiveDecision(parts, request, options);
}
