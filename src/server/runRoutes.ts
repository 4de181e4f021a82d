// The pages of runs, and what an operator does there.
import type { Context, Hono } from "hono";
import { LIMIT_NAMES } from "../core/budget.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { cancelRun } from "../operate/cancelRun.js";
import { raiseBudget } from "../operate/raiseBudget.js";
import { redrive } from "../operate/redrive.js";
import { type SettleRequest, settle } from "../operate/settle.js";
import { listApprovals } from "../postgres/approvalRows.js";
import { budgetHistory, budgetsOfThread } from "../postgres/budgetRows.js";
import { duplicateEffects } from "../postgres/lateReceipts.js";
import {
  budgetsOfThreads,
  countCommitted,
  countThreads,
  currentSteps,
  spendingOverTime,
  stepWindow,
} from "../postgres/runPages.js";
import { ledgerNow, listThreads } from "../postgres/runs.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import { paidSpan, sumCalls } from "../postgres/trace.js";
import { TIME_PARTS } from "./charts/costs.js";
import type { Form } from "./guard.js";
import { runPath } from "./pages/html.js";
import { runPage, runTitle, STEPS_PER_PAGE } from "./pages/run.js";
import { RUN_STATES, RUNS_PER_PAGE, runsPage } from "./pages/runs.js";
import { type Site, send } from "./site.js";
import { visible } from "./text.js";
import type { Visitor } from "./visitor.js";

export function addRunRoutes(app: Hono, site: Site): void {
  const { guard, ledger } = site;
  app.get(
    "/runs",
    guard.page((c, visitor) => {
      const threadId = c.req.query("thread");
      return threadId === undefined ? showRuns(c, site, visitor) : showRun(c, site, visitor, threadId);
    }),
  );
  app.get(
    "/runs/:threadId",
    guard.page((c, visitor) => showRun(c, site, visitor, c.req.param("threadId") ?? "")),
  );
  app.post(
    "/inbox/settle",
    guard.form(async (c, { user }, form) => {
      const { result } = await settle(ledger, settlement(form, user.id));
      return back(c, form, result);
    }),
  );
  app.post(
    "/inbox/raise",
    guard.form(async (c, { user }, form) => {
      const [threadId, scope] = [field(form, "thread"), field(form, "scope")];
      await raiseBudget(ledger, {
        threadId,
        scope,
        by: user.id,
        ...amounts(form),
        ...deadlineOf(form),
        ...reasonOf(form),
      });
      return back(c, form, "raised");
    }),
  );
  app.post(
    "/inbox/redrive",
    guard.form(async (c, { user }, form) => {
      const threadId = field(form, "thread");
      const [before] = await listThreads(await site.database(), { threadId, limit: 1 });
      const keys = await redrive(ledger, { threadId, by: user.id, ...reasonOf(form) });
      return back(c, form, keys.length === 0 && before?.cancel === undefined ? "nothing" : "redriven");
    }),
  );
  app.post(
    "/inbox/cancel",
    guard.form(async (c, { user }, form) => {
      const request = { threadId: field(form, "thread"), by: user.id, ...reasonOf(form) };
      return back(c, form, (await cancelRun(ledger, request)).result);
    }),
  );
}

async function showRuns(c: Context, site: Site, visitor: Visitor): Promise<Response> {
  const database = await site.database();
  const state = RUN_STATES.find((one) => one === c.req.query("state"));
  const page = whole(c.req.query("page"), 1, 10_000);
  const offset = (page - 1) * RUNS_PER_PAGE;
  const filter = { limit: RUNS_PER_PAGE, offset, ...(state === undefined ? {} : { state }) };
  const [threads, counts, now] = await Promise.all([
    listThreads(database, filter),
    countThreads(database),
    ledgerNow(database),
  ]);
  const ids = threads.map(({ threadId }) => threadId);
  const [budgets, current] = await Promise.all([budgetsOfThreads(database, ids), currentSteps(database, ids)]);
  const view = { threads, counts, budgets, current, state, page, now };
  return send(c, site, visitor, { title: "Runs", section: "runs" }, runsPage(view));
}

async function showRun(c: Context, site: Site, visitor: Visitor, threadId: string): Promise<Response> {
  const database = await site.database();
  // PostgreSQL's text has no NUL: no thread is called so.
  const [thread] = threadId.includes("\0") ? [] : await listThreads(database, { threadId, limit: 1 });
  if (thread === undefined) throw new NotFoundError(`No thread is called "${visible(threadId, 80)}".`);
  const lastPage = Math.max(0, thread.steps - STEPS_PER_PAGE);
  const after = whole(c.req.query("after"), lastPage, thread.steps);
  const [steps, unsettled, duplicates, approvals, budgets, history, costs, spending, paid, current, committed, now] =
    await Promise.all([
      stepWindow(database, threadId, { after, limit: STEPS_PER_PAGE }),
      unsettledSteps(database, 20, threadId),
      duplicateEffects(database, 20, threadId),
      listApprovals(database, { threadId, limit: 50 }),
      budgetsOfThread(database, threadId),
      budgetHistory(database, threadId),
      sumCalls(database, { by: "node", threadId, timeZone: "UTC", limit: 12 }),
      spendingOverTime(database, threadId, TIME_PARTS),
      paidSpan(database, threadId),
      currentSteps(database, [threadId]),
      countCommitted(database, threadId),
      ledgerNow(database),
    ]);
  const view = {
    ...{ thread, steps, after, unsettled, duplicates, approvals, budgets, spending, paid, committed, now },
    ...{ current: current.get(threadId), budgetHistory: history, costs: costs.groups },
  };
  return send(c, site, visitor, { title: runTitle(thread), section: "runs" }, runPage(view, visitor));
}

/** To the page that the form stood on; where that is comes from its thread alone. */
function back(c: Context, form: Form, done: string): Response {
  const path = runPath(field(form, "thread"));
  return c.redirect(`${path}${path.includes("?") ? "&" : "?"}done=${encodeURIComponent(done)}`, 303);
}

const OUTCOMES: readonly SettleRequest["outcome"][] = [
  "happened",
  "did-not-happen",
  "write-off",
  "keep",
  "fail",
  "reuse",
  "run-again",
  "acknowledge",
];

function settlement(form: Form, by: string): SettleRequest {
  const outcome = OUTCOMES.find((one) => one === form.get("outcome"));
  if (outcome === undefined) throw new InvalidOptionError("Choose what you found out.");
  const receipt = outcome === "happened" ? { receipt: parseReceipt(form.get("receipt") ?? "") } : {};
  return { idempotencyKey: field(form, "key"), by, outcome, ...receipt, ...reasonOf(form) };
}

function parseReceipt(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidOptionError(
      'The receipt is no JSON, such as {"id":"po_1"} or "po_1" with its quotes. Nothing was settled.',
    );
  }
}

function amounts(form: Form): Record<string, number> {
  const given = LIMIT_NAMES.map((name) => [name, form.get(name)?.trim() ?? ""] as const).filter(
    ([, text]) => text !== "",
  );
  return Object.fromEntries(
    given.map(([name, text]) => {
      const value = Number(text);
      if (Number.isFinite(value)) return [name, value];
      throw new InvalidOptionError(`Expected ${name} to be a number, got "${visible(text, 40)}".`);
    }),
  );
}

/** As a browser's field for a time sends it; the page says that it is UTC. */
function deadlineOf(form: Form): { deadline?: Date } {
  const text = form.get("deadline")?.trim() ?? "";
  if (text === "") return {};
  const deadline = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text) ? new Date(`${text}Z`) : new Date(Number.NaN);
  if (!Number.isNaN(deadline.getTime())) return { deadline };
  throw new InvalidOptionError("Expected the deadline to be a date and a time, such as 2026-03-01T03:00.");
}

function reasonOf(form: Form): { reason?: string } {
  const reason = form.get("reason")?.trim() ?? "";
  return reason === "" ? {} : { reason };
}

function field(form: Form, name: string): string {
  const value = form.get(name) ?? "";
  if (value === "") throw new InvalidOptionError(`The form lacks its \`${name}\`. Reload the page, and send it again.`);
  return checkId(name, value);
}

/** A count of an address, or `otherwise`. */
function whole(text: string | undefined, otherwise: number, most: number): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Math.min(Math.max(0, Number(text)), most) : otherwise;
}
