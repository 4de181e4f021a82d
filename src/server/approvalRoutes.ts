// The inbox: its pages, its forms, and the same by JSON.
import type { Context, Hono } from "hono";
import { type Answer, APPROVAL_STATUSES, type Approval, type ApprovalStatus, namesOf } from "../core/approval.js";
import { checkEdit } from "../core/decide.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import { decide, extendApproval } from "../operate/decide.js";
import {
  approvalHistory,
  countPending,
  findApproval,
  listApprovals,
  type ReadApproval,
} from "../postgres/approvalRows.js";
import { countUnsettled } from "../postgres/runPages.js";
import type { Form } from "./guard.js";
import { approvalPage, approvalPath, reviewPage } from "./pages/approval.js";
import { INBOX_LIMIT, inboxPage } from "./pages/inbox.js";
import { type Site, send } from "./site.js";
import { visible } from "./text.js";
import type { Visitor } from "./visitor.js";

export function addApprovalRoutes(app: Hono, site: Site): void {
  const { guard } = site;
  app.get(
    "/inbox",
    guard.page((c, visitor) => showInbox(c, site, visitor)),
  );
  app.get(
    "/inbox/approvals/:id",
    guard.page((c, visitor) => showApproval(c, site, visitor)),
  );
  app.post(
    "/inbox/approvals/:id/review",
    guard.form((c, visitor, form) => review(c, site, visitor, form)),
  );
  app.post(
    "/inbox/approvals/:id/decide",
    guard.form(async (c, visitor, form) => {
      const { result, approval } = await decideAs(c, site, visitor, fromForm(form));
      return c.redirect(`${approvalPath(approval.id)}?done=${result === "applied" ? approval.status : "already"}`, 303);
    }),
  );
  app.post(
    "/inbox/approvals/:id/extend",
    guard.form(async (c, { user }, form) => {
      const reason = form.get("reason")?.trim() ?? "";
      const more = {
        byMs: Number(form.get("hours")?.trim() || Number.NaN) * HOUR_MS,
        ...(reason === "" ? {} : { reason }),
      };
      const who = { by: user.id, roles: user.roles ?? [] };
      const approval = await extendApproval(site.ledger, { approvalId: idOf(c), ...who, ...more });
      return c.redirect(`${approvalPath(approval.id)}?done=extended`, 303);
    }),
  );
  app.get(
    "/api/session",
    guard.ask((c, { user, csrf }) => c.json({ user, csrf })),
  );
  app.get(
    "/api/approvals",
    guard.ask((c, visitor) => listByJson(c, site, visitor)),
  );
  app.get(
    "/api/approvals/:id",
    guard.ask(async (c) => c.json(toJson(await wanted(c, site)))),
  );
  app.post(
    "/api/approvals/:id/decide",
    guard.call(async (c, visitor, body) => {
      const { result, approval } = await decideAs(c, site, visitor, fromJson(body));
      return c.json({ result, winner: toJson(approval) }, result === "applied" ? 200 : 409);
    }),
  );
  app.post(
    "/api/approvals/:id/extend",
    guard.call(async (c, { user }, body) => {
      knownFields(body, ["byMs", "reason"]);
      const { byMs, reason } = (body ?? {}) as { byMs?: unknown; reason?: unknown };
      const more = {
        byMs: typeof byMs === "number" ? byMs : Number.NaN,
        ...(typeof reason === "string" ? { reason } : {}),
      };
      return c.json(
        toJson(
          await extendApproval(site.ledger, { approvalId: idOf(c), by: user.id, roles: user.roles ?? [], ...more }),
        ),
      );
    }),
  );
}

const HOUR_MS = 3_600_000;

async function showInbox(c: Context, site: Site, visitor: Visitor): Promise<Response> {
  const database = await site.database();
  const filter = filterOf(c, visitor);
  const [approvals, waiting, unsettled] = await Promise.all([
    listApprovals(database, { ...filter, limit: INBOX_LIMIT }),
    countPending(database),
    countUnsettled(database),
  ]);
  const view = {
    approvals,
    waiting,
    unsettled,
    status: filter.status,
    mine: filter.names !== undefined,
    threadId: filter.threadId,
  };
  return send(c, site, visitor, { title: "Inbox", section: "inbox" }, inboxPage(view, visitor));
}

/** What the address asks for; what it does not know is taken as not said. */
function filterOf(c: Context, { user }: Visitor) {
  const status: ApprovalStatus = APPROVAL_STATUSES.find((one) => one === c.req.query("status")) ?? "pending";
  const threadId = c.req.query("thread");
  return {
    status,
    ...(threadId === undefined || threadId === "" || threadId.includes("\0") ? {} : { threadId }),
    ...(c.req.query("mine") === "1" ? { names: namesOf({ by: user.id, roles: user.roles ?? [] }) } : {}),
  };
}

async function showApproval(c: Context, site: Site, visitor: Visitor): Promise<Response> {
  const approval = await wanted(c, site);
  const history = await approvalHistory(await site.database(), approval.id);
  return send(
    c,
    site,
    visitor,
    { title: visible(approval.action, 80), section: "inbox" },
    approvalPage(approval, history, visitor),
  );
}

async function review(c: Context, site: Site, visitor: Visitor, form: Form): Promise<Response> {
  const approval = await wanted(c, site);
  const args = parseArgs(form.get("args") ?? "");
  checkEdit(approval, args);
  const page = reviewPage(approval, args, form.get("comment") ?? "", visitor);
  return send(c, site, visitor, { title: `Change ${visible(approval.action, 60)}`, section: "inbox" }, page);
}

/** The form says what; who says it is never the form's to say. */
function decideAs(c: Context, { ledger }: Site, { user }: Visitor, decision: Answer) {
  return decide(ledger, { approvalId: idOf(c), by: user.id, roles: user.roles ?? [], decision });
}

async function wanted(c: Context, site: Site): Promise<ReadApproval> {
  const id = idOf(c);
  const approval = id === "" ? undefined : await findApproval(await site.database(), id);
  if (approval === undefined) throw new NotFoundError(`No request for approval has the id "${visible(id, 80)}".`);
  return approval;
}

/** An id has 32 hexadecimal digits; nothing else is one. */
function idOf(c: Context): string {
  const id = c.req.param("id") ?? "";
  if (/^[\w-]{1,128}$/.test(id)) return id;
  throw new NotFoundError(`No request for approval has the id "${visible(id, 80)}".`);
}

function fromForm(form: Form): Answer {
  const said = form.get("comment")?.trim() ?? "";
  const comment = said === "" ? {} : { comment: said };
  const status = form.get("status");
  if (status === "approved" || status === "rejected") return { status, ...comment };
  if (status === "edited") return { status, args: parseArgs(form.get("args") ?? ""), ...comment };
  throw new InvalidOptionError("Say whether it is approved, rejected or edited.");
}

/** Who acts is who sends it: a name in the body would be dropped in silence. */
function knownFields(body: unknown, known: readonly string[]): void {
  if (typeof body === "object" && body !== null) knownOptions("The body", body, known);
}

function fromJson(body: unknown): Answer {
  knownFields(body, ["decision", "status", "args", "comment"]);
  knownFields((body as { decision?: unknown } | null)?.decision, ["status", "args", "comment"]);
  const { decision, comment } = (body ?? {}) as { decision?: unknown; comment?: unknown };
  const {
    status,
    args,
    comment: inner,
  } = (typeof decision === "object" && decision !== null ? decision : (body ?? {})) as {
    status?: unknown;
    args?: unknown;
    comment?: unknown;
  };
  const said = inner ?? comment;
  if (said !== undefined && typeof said !== "string") throw new InvalidOptionError("Expected `comment` to be a text.");
  const rest = said === undefined ? {} : { comment: said };
  if (status === "approved" || status === "rejected") return { status, ...rest };
  if (status === "edited") return { status, args, ...rest };
  throw new InvalidOptionError('Expected { "status": "approved" | "rejected" | "edited", "args"?, "comment"? }.');
}

function parseArgs(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidOptionError("The arguments are no JSON. Nothing was decided; go back, and mend them.");
  }
}

async function listByJson(c: Context, site: Site, visitor: Visitor): Promise<Response> {
  const approvals = await listApprovals(await site.database(), { ...filterOf(c, visitor), limit: 100 });
  return c.json({ approvals: approvals.map(toJson) });
}

/** Without what only the ledger needs. */
function toJson({ decisionId: _, readAt: __, ...approval }: Approval & { decisionId?: unknown }): object {
  return approval;
}
