// Delivering what is due. A message is sent at least once: a deliverer that dies between the answer and the note of it
// leaves one that is sent again under the same webhook-id, by which receivers tell.
import { recordFailure } from "../core/failure.js";
import { findApproval } from "../postgres/approvalRows.js";
import { claimMessages, giveBack, noteSent, noteUnsent, type OutboxMessage, pruneOutbox } from "../postgres/outbox.js";
import type { Database } from "../postgres/pool.js";
import { type Sent, sendWebhook } from "./send.js";

export interface Delivered {
  /** Messages that arrived. */
  readonly sent: number;
  /** Attempts that failed and are tried again later. */
  readonly failed: number;
  /** Messages that are tried no more. */
  readonly givenUp: number;
}

/** 5 s, then four times as long each time: a restart is over by the second, a deploy by the fourth. */
const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 6 * 3_600_000;
/** Seven in the first eight hours, then every six: a message is tried for three days. */
const MAX_ATTEMPTS = 18;
/** Endpoints that failed together are not called together. */
const JITTER = 0.1;

/** How long after so many attempts; undefined when there were enough. */
export function retryDelayMs(attempts: number, retryAfterMs = 0, random = Math.random()): number | undefined {
  if (attempts >= MAX_ATTEMPTS) return undefined;
  const plainMs = Math.max(FIRST_RETRY_MS * 4 ** (attempts - 1), retryAfterMs);
  return Math.min(plainMs * (1 + JITTER * random), MAX_RETRY_MS);
}

/** Delivers until nothing is due, or the signal fires. Any number of deliverers may do so at once. */
export async function deliverDue(database: Database, signal?: AbortSignal): Promise<Delivered> {
  const total = { sent: 0, failed: 0, givenUp: 0 };
  while (signal?.aborted !== true) {
    const claimed = await claimMessages(database);
    if (claimed.length === 0) break;
    const outcomes = await Promise.allSettled(claimed.map((message) => deliverOne(database, message, signal)));
    for (const outcome of outcomes) {
      // The database went away; the claims end by themselves.
      if (outcome.status === "rejected") throw outcome.reason;
      if (outcome.value !== undefined) total[outcome.value]++;
    }
  }
  if (total.sent + total.givenUp > 0) await pruneOutbox(database);
  return total;
}

async function deliverOne(
  database: Database,
  message: OutboxMessage,
  signal: AbortSignal | undefined,
): Promise<keyof Delivered | undefined> {
  const sent = await attempt(database, message, signal);
  if (sent.result === "stopped") {
    await giveBack(database, message);
    return undefined;
  }
  if (sent.result === "sent") {
    await noteSent(database, message.id);
    return "sent";
  }
  const retryMs = sent.gone ? undefined : retryDelayMs(message.attempts, sent.retryAfterMs);
  await noteUnsent(database, message, sent.why, retryMs);
  return retryMs === undefined ? "givenUp" : "failed";
}

async function attempt(database: Database, message: OutboxMessage, signal: AbortSignal | undefined): Promise<Sent> {
  const claimedMs = performance.now();
  let secrets: string[];
  let body: string;
  try {
    secrets = message.secrets();
    body = await bodyOf(database, message);
  } catch (error) {
    // A codec that is not here: another deliverer may have it.
    return { result: "failed", why: recordFailure(error).message, retryAfterMs: undefined, gone: false };
  }
  const { url = "", allowPrivate, claimedAt } = message;
  // The ledger's clock goes on while the body is made.
  const at = new Date(claimedAt.getTime() + performance.now() - claimedMs);
  return sendWebhook({ url, allowPrivate, secrets, id: webhookId(message.id), at, body }, { signal });
}

/** The form that Standard Webhooks shows. */
function webhookId(id: string): string {
  return `msg_${id.replaceAll("-", "")}`;
}

/** The same text in every attempt, as far as the endpoint's settings are the same. */
async function bodyOf(database: Database, message: OutboxMessage): Promise<string> {
  const { kind, approvalId, createdAt, payload, link, includeArgs } = message;
  const times = Object.fromEntries(
    ["requestedAt", "deadlineAt", "decidedAt"]
      .filter((name) => typeof payload[name] === "number")
      .map((name) => [name, new Date(payload[name] as number)]),
  );
  const data = {
    ...payload,
    ...times,
    ...(link === undefined ? {} : { link: link.replaceAll("{id}", encodeURIComponent(approvalId)) }),
    ...(includeArgs ? await contentOf(database, approvalId) : {}),
  };
  return JSON.stringify({ type: `approval.${kind}`, timestamp: createdAt, data });
}

async function contentOf(database: Database, approvalId: string): Promise<object> {
  const { args, description, editedArgs, comment } = (await findApproval(database, approvalId)) ?? {};
  return { args, description, editedArgs, comment };
}
