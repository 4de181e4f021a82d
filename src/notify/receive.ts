// A signed request that decides. Nothing is believed before the signature fits, and then no more than the endpoint is
// trusted with. The same webhook-id is one decision, however often it comes and whoever dies in between.
import { createHash } from "node:crypto";
import type { Answer, ApprovalLedger } from "../core/approval.js";
import { decideRequest } from "../core/decide.js";
import { InvalidOptionError, isLonghaulError, WebhookRefusedError } from "../core/errors.js";
import { plainText, redact } from "../core/failure.js";
import { knownOptions } from "../core/options.js";
import { verifyWebhook } from "../core/webhook.js";
import type { WebhookSettings } from "../core/webhookOptions.js";
import type { Database } from "../postgres/pool.js";
import { keepAnswer, noteReceived, type WebhookAnswer } from "../postgres/webhookReceipts.js";
import { findWebhook } from "../postgres/webhooks.js";

export interface ReceiveOptions {
  /** Name of the endpoint. @default the last part of the request's path */
  readonly endpoint?: string;
  /** Milliseconds. @default 300000 */
  readonly toleranceMs?: number;
}

/** Room for edited arguments; no more than a decision needs is read of strangers. */
const MAX_BODY = 1_000_000;

interface Parts {
  readonly database: Database;
  readonly approvals: ApprovalLedger;
}

/** Never throws: what went wrong is in the response. Statuses from 500 are worth another attempt, those below are final. */
export async function receiveDecision(parts: Parts, request: Request, options: ReceiveOptions): Promise<Response> {
  try {
    const { status, body } = await receive(parts, request, options);
    return respond(status, body);
  } catch (error) {
    const { status, body } = refusal(error) ?? { status: 503, body: { error: "UNAVAILABLE" } };
    return respond(status, body);
  }
}

function respond(status: number, body: object): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return new Response(JSON.stringify(body), { status, headers });
}

/** What is wrong with the request itself; undefined for what is wrong here. */
function refusal(error: unknown): WebhookAnswer | undefined {
  if (!isLonghaulError(error) || error.status === undefined) return undefined;
  return { status: error.status, body: { error: error.code, message: redact(plainText(error.message, 500)) } };
}

async function receive(parts: Parts, request: Request, options: ReceiveOptions): Promise<WebhookAnswer> {
  if (request.method !== "POST") return { status: 405, body: { error: "METHOD", message: "Send a POST." } };
  const { database } = parts;
  const name = options.endpoint ?? new URL(request.url).pathname.split("/").at(-1) ?? "";
  const webhook = /^[\w-]{1,63}$/.test(name) ? await findWebhook(database, name) : undefined;
  // Strangers are not told which endpoints there are.
  if (webhook === undefined) throw new WebhookRefusedError("The webhook's signature does not fit. Nothing was done.");
  const body = await readBody(request);
  if (body === undefined) return { status: 413, body: { error: "TOO_LARGE", message: `At most ${MAX_BODY} bytes.` } };
  const { toleranceMs } = options;
  const { id } = verifyWebhook({
    headers: request.headers,
    body,
    secret: webhook.secrets(),
    now: webhook.readAt,
    ...(toleranceMs === undefined ? {} : { toleranceMs }),
  });
  const { settings } = webhook;
  if (!settings.decides) {
    return { status: 403, body: { error: "DECISION_REFUSED", message: `The webhook "${name}" may not decide.` } };
  }
  const bodyHash = createHash("sha256").update(body).digest();
  const receipt = { endpoint: name, webhookId: id, bodyHash };
  const { isSame, answer } = await noteReceived(database, receipt);
  if (!isSame) {
    return { status: 409, body: { error: "INPUT_CONFLICT", message: `"${id}" came before with another body.` } };
  }
  return answer ?? keepAnswer(database, receipt, await answerTo(parts, settings, id, body));
}

async function answerTo(parts: Parts, settings: WebhookSettings, id: string, body: Buffer): Promise<WebhookAnswer> {
  try {
    const { approvalId, decision, by: claimed } = parse(body);
    const by = claimed !== undefined && vouches(settings, claimed) ? claimed : `webhook:${settings.name}`;
    const decider = { by, roles: settings.roles, decisionId: uuidOf(`${settings.name}\0${id}`) };
    const { result, approval } = await decideRequest(parts.approvals, approvalId, decider, decision);
    const { status, decidedBy, decidedAt } = approval;
    return { status: 200, body: { result, approvalId, status, decidedBy, decidedAt } };
  } catch (error) {
    const refused = refusal(error);
    if (refused === undefined) throw error;
    return refused;
  }
}

/** Another endpoint's name is nobody's to lend. */
function vouches({ vouchesFor }: WebhookSettings, by: string): boolean {
  return vouchesFor.includes(by) || (vouchesFor.includes("*") && !/^webhook:/i.test(by.normalize("NFKC")));
}

/** The decision's own id, made of the message's: after a crash the same message finds what it decided. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

interface DecisionBody {
  readonly approvalId: string;
  readonly decision: Answer;
  readonly by: string | undefined;
}

function parse(body: Buffer): DecisionBody {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    throw new InvalidOptionError("Expected the body to be JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new InvalidOptionError("Expected the body to be { approvalId, decision, by? }.");
  knownOptions("The body", value, ["approvalId", "decision", "by"]);
  const { approvalId, decision, by } = value as Record<string, unknown>;
  if (typeof approvalId !== "string") throw new InvalidOptionError("Expected `approvalId` to be a string.");
  if (by !== undefined && (typeof by !== "string" || by === ""))
    throw new InvalidOptionError("Expected `by` to be a name.");
  return { approvalId, decision: checkAnswer(decision), by };
}

function checkAnswer(decision: unknown): Answer {
  const answer = (typeof decision === "object" && decision !== null ? decision : {}) as Record<string, unknown>;
  const { status, comment, args } = answer;
  if (status !== "approved" && status !== "rejected" && status !== "edited")
    throw new InvalidOptionError('Expected `decision.status` to be "approved", "rejected" or "edited".');
  knownOptions("`decision`", answer, status === "edited" ? ["status", "comment", "args"] : ["status", "comment"]);
  if (comment !== undefined && typeof comment !== "string")
    throw new InvalidOptionError("Expected `decision.comment` to be a text.");
  const said = comment === undefined ? {} : { comment };
  if (status !== "edited") return { status, ...said };
  if (args === undefined) throw new InvalidOptionError("An edit needs the `args` that are allowed.");
  return { status, args, ...said };
}

/** Undefined when it is too large. */
async function readBody(request: Request): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
