// What the routes share: the ledger, the frame that their pages stand in, and how an error is told.
import type { Context } from "hono";
import { isLonghaulError } from "../core/errors.js";
import type { Ledger } from "../langgraph/ledger.js";
import { countPending } from "../postgres/approvalRows.js";
import { countOverdue, readSweeping, type Sweeping } from "../postgres/health.js";
import type { PooledDatabase } from "../postgres/pool.js";
import type { Guard } from "./guard.js";
import { duration, type Html } from "./pages/html.js";
import { type Frame, layout } from "./pages/layout.js";
import { plural, visible } from "./text.js";
import type { Visitor } from "./visitor.js";

export interface Site {
  readonly ledger: Ledger;
  readonly guard: Guard;
  database(): Promise<PooledDatabase>;
}

/** What was done, by the name that an address may carry: no text of an address is ever shown. */
const NOTICES: Readonly<Record<string, string>> = {
  approved: "Approved. The thread goes on at its next run.",
  rejected: "Rejected. The thread goes on at its next run.",
  edited: "Approved with your changes. The thread goes on at its next run.",
  extended: "It has more time now.",
  already: "Somebody decided before. Nothing was changed; this is what stands.",
  settled: "Settled. The thread goes on at its next run.",
  "already-settled": "It was settled before. Nothing was changed.",
  "not-yet":
    "Not yet: a request may still be on its way, or a process is at it. Try again when the time below is over.",
  raised: "More is allowed. The thread goes on at its next run.",
  cancelled: "Cancelled. Nothing of it starts any more.",
  "cancel requested": "Cancel is requested. Its run starts nothing more, and is being told to stop.",
  "already ended": "It had come to its end. Nothing was changed.",
  redriven: "It may go on from where it failed, at its next run.",
  nothing: "Nothing had failed for good, so there was nothing to do.",
};

/** Sends a page to somebody who is known, with what needs looking after. */
export async function send(
  c: Context,
  site: Site,
  visitor: Visitor,
  frame: Omit<Frame, "visitor" | "waiting" | "warning" | "notice">,
  content: Html,
): Promise<Response> {
  const database = await site.database();
  const [waiting, overdue, sweeping] = await Promise.all([
    countPending(database),
    countOverdue(database),
    readSweeping(database),
  ]);
  const done = c.req.query("done");
  const notice = done !== undefined && Object.hasOwn(NOTICES, done) ? NOTICES[done] : undefined;
  return c.html(layout({ ...frame, visitor, waiting, notice, warning: warningOf(overdue, sweeping) }, content));
}

/** A sweep comes about once a second, wherever there is a worker or a server that does it. */
const SWEPT_WITHIN_MS = 60_000;

/** Work that is due and that nobody looks for: without a worker it never runs. */
function warningOf(overdue: number, { due, swept_ms_ago: sweptMsAgo }: Sweeping): string | undefined {
  if (due && (sweptMsAgo === null || sweptMsAgo > SWEPT_WITHIN_MS)) {
    const since = sweptMsAgo === null ? "yet" : `for ${duration(sweptMsAgo)}`;
    return `Nobody has looked for due work ${since}: deadlines pass unnoticed, and nothing that waits for time goes on. Start a worker: longhaul worker`;
  }
  if (overdue === 0) return undefined;
  return `${plural(overdue, "thread has", "threads have")} been due for over a minute, and nobody has run ${overdue === 1 ? "it" : "them"}. Is a worker running?`;
}

/** An error as whoever caused it is told: ours say what is wrong; others may hold anything. */
export function explain(error: unknown): { status: 400 | 401 | 403 | 404 | 409 | 500; message: string } {
  if (!isLonghaulError(error)) return { status: 500, message: "Something went wrong; the server's log says what." };
  const known = [400, 401, 403, 404, 409] as const;
  return { status: known.find((status) => status === error.status) ?? 500, message: visible(error.message, 1000) };
}
