// One POST of one message. Follows no redirect, reads no answer but its status, and connects to the very address that was
// checked: a name that resolves to another one a moment later changes nothing.
import { lookup as resolve } from "node:dns";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { plainText, redact, retryAfterMs } from "../core/failure.js";
import { isPublicAddress } from "../core/publicAddress.js";
import { webhookHeaders } from "../core/webhook.js";
import { checkTarget } from "../core/webhookOptions.js";

export interface SendRequest {
  readonly url: string;
  readonly allowPrivate: boolean;
  readonly secrets: readonly string[];
  readonly id: string;
  /** Of this attempt: receivers refuse what is old. */
  readonly at: Date;
  readonly body: string;
}

export type Sent =
  | { readonly result: "sent"; readonly status: number }
  /** `gone`: the endpoint wants no more. */
  | {
      readonly result: "failed";
      readonly why: string;
      readonly retryAfterMs: number | undefined;
      readonly gone: boolean;
    }
  /** The signal fired. */
  | { readonly result: "stopped" };

/** What receivers should answer within, having stored the message. */
const TIMEOUT_MS = 10_000;
const MAX_WHY = 300;

/** Never throws: what went wrong is in the answer. */
export async function sendWebhook(
  request: SendRequest,
  options: { signal?: AbortSignal | undefined; timeoutMs?: number } = {},
): Promise<Sent> {
  const { signal, timeoutMs = TIMEOUT_MS } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await post(request, signal === undefined ? timeout : AbortSignal.any([timeout, signal]));
    return judge(response);
  } catch (error) {
    if (signal?.aborted) return { result: "stopped" };
    return failed(timeout.aborted ? `It did not answer within ${timeoutMs} ms.` : describe(error));
  }
}

async function post(message: SendRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const { id, at, body, secrets, allowPrivate } = message;
  const url = checkTarget(message.url, allowPrivate);
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "user-agent": "langgraph-longhaul",
    ...webhookHeaders({ id, timestamp: Math.floor(at.getTime() / 1000), body }, secrets),
  };
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      // A connection of its own: one that is kept was checked for another message.
      { method: "POST", agent: false, headers, signal, ...(allowPrivate ? {} : { lookup: publicLookup() }) },
      (response) => {
        resolve(response);
        response.destroy();
      },
    );
    request.on("error", reject);
    // Also one that never answers: an upgrade to another protocol, for which there is no event here, closes and says nothing.
    request.on("close", () => reject(new Error("It closed the connection without an answer.")));
    request.end(body);
  });
}

/** Resolves once, for addresses of the public internet alone. One that is not spoils the name: it is no accident. */
export function publicLookup(lookup: typeof resolve = resolve): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      const refused = addresses?.find(({ address }) => !isPublicAddress(address));
      if (error !== null) callback(error, "", 0);
      else if (first === undefined) callback(new Error(`${hostname} has no address.`), "", 0);
      else if (refused !== undefined)
        callback(new Error(`${hostname} is ${refused.address}, which is not public; see \`allowPrivate\`.`), "", 0);
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function judge({ statusCode = 0, headers }: IncomingMessage): Sent {
  if (statusCode >= 200 && statusCode < 300) return { result: "sent", status: statusCode };
  if (statusCode >= 300 && statusCode < 400)
    return failed(`It answered ${statusCode}. Redirects are not followed: register the address it leads to.`);
  return { ...failed(`It answered ${statusCode}.`), retryAfterMs: retryAfterMs({ headers }), gone: statusCode === 410 };
}

function failed(why: string) {
  return { result: "failed", why: plainText(redact(why), MAX_WHY), retryAfterMs: undefined, gone: false } as const;
}

function describe(error: unknown): string {
  if (error instanceof AggregateError) return describe(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
