// Signing and verifying webhooks by Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over
// `id.timestamp.body`, compared in constant time, and refused outside a window of time so that an old one cannot be played
// again.
import { createHmac, timingSafeEqual } from "node:crypto";
import { InvalidOptionError, WebhookRefusedError } from "./errors.js";

/** What both sides use. */
const TOLERANCE_MS = 5 * 60_000;
/** A rotation needs two. */
const MAX_SECRETS = 5;
/** A header with more is no rotation. */
const MAX_SIGNATURES = 20;

/** @throws InvalidOptionError for secrets that are none: `whsec_` and 24 to 64 random bytes in base64. */
export function checkSecrets(secret: unknown): string[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0 || secrets.length > MAX_SECRETS)
    throw new InvalidOptionError(`Expected \`secret\` to be one secret, or a list of 1 to ${MAX_SECRETS}.`);
  for (const one of secrets) keyOf(one);
  return secrets as string[];
}

function keyOf(secret: unknown): Buffer {
  const text = typeof secret === "string" ? secret.replace(/^whsec_/, "") : "";
  const key = /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);
  if (key.length >= 24 && key.length <= 64) return key;
  // The secret itself is in no message.
  throw new InvalidOptionError(
    "Expected `secret` to be `whsec_` and 24 to 64 random bytes in base64. Make one: echo whsec_$(openssl rand -base64 32)",
  );
}

export interface SignedMessage {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string | Uint8Array;
}

function signature(secret: string, { id, timestamp, body }: SignedMessage): Buffer {
  return createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest();
}

/** The headers of a message, signed with each secret: its receiver may know the old one or the new one. */
export function webhookHeaders(message: SignedMessage, secrets: readonly string[]): Record<string, string> {
  return {
    "webhook-id": message.id,
    "webhook-timestamp": String(message.timestamp),
    "webhook-signature": secrets.map((secret) => `v1,${signature(secret, message).toString("base64")}`).join(" "),
  };
}

export interface VerifyWebhookOptions {
  /** As they came: a `Headers`, or Node's `request.headers`. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Exactly as it came. JSON that was parsed and written again has another signature. */
  readonly body: string | Uint8Array;
  /** Or several, while a secret is being changed: one of them must fit. */
  readonly secret: string | readonly string[];
  /** How old it may be, and how far in the future. Milliseconds. @default 300000 */
  readonly toleranceMs?: number;
  /** @default this machine's clock */
  readonly now?: Date;
}

export interface VerifiedWebhook {
  /** The same in every attempt at the message: do what it says once for each id. */
  readonly id: string;
  /** Of this attempt. */
  readonly sentAt: Date;
}

/**
 * Whether a webhook comes from who has the secret, unchanged and just now. It may still be a repeat: tell by `id`.
 *
 * @throws WebhookRefusedError (status 401) for one that does not; InvalidOptionError for a secret that is none.
 * @example
 * const { id } = verifyWebhook({ headers: request.headers, body: await request.text(), secret });
 */
export function verifyWebhook(options: VerifyWebhookOptions): VerifiedWebhook {
  const { headers, body, toleranceMs = TOLERANCE_MS, now = new Date() } = options;
  const secrets = checkSecrets(options.secret);
  if (!Number.isFinite(toleranceMs) || toleranceMs < 0)
    throw new InvalidOptionError(`Expected \`toleranceMs\` to be milliseconds, got ${toleranceMs}.`);
  const id = header(headers, "webhook-id");
  // A dot would leave open where the id ends.
  if (!/^[\x21-\x2d\x2f-\x7e]{1,256}$/.test(id)) throw new WebhookRefusedError("The webhook has no usable webhook-id.");
  const seconds = header(headers, "webhook-timestamp");
  if (!/^\d{1,12}$/.test(seconds)) throw new WebhookRefusedError("The webhook has no usable webhook-timestamp.");
  const sentAt = new Date(Number(seconds) * 1000);
  const given = header(headers, "webhook-signature").split(" ").slice(0, MAX_SIGNATURES).map(readSignature);
  const valid = secrets.some((secret) => {
    // The digits as they came were signed, not the number they mean.
    const expected = createHmac("sha256", keyOf(secret)).update(`${id}.${seconds}.`).update(body).digest();
    return given.some((bytes) => bytes.length === expected.length && timingSafeEqual(bytes, expected));
  });
  if (!valid) throw new WebhookRefusedError("The webhook's signature does not fit. Nothing was done.");
  if (Math.abs(now.getTime() - sentAt.getTime()) > toleranceMs)
    throw new WebhookRefusedError("The webhook's timestamp is too far from now. Nothing was done; send it anew.");
  return { id, sentAt };
}

function header(headers: VerifyWebhookOptions["headers"], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const key = Object.keys(headers).find((one) => one.toLowerCase() === name);
  const value = key === undefined ? undefined : headers[key];
  return typeof value === "string" ? value : "";
}

/** Other versions than v1 are other people's keys. */
function readSignature(text: string): Buffer {
  const [, base64] = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(text) ?? [];
  return base64 === undefined ? Buffer.alloc(0) : Buffer.from(base64, "base64");
}
