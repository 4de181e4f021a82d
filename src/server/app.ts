// The web app: which address shows what, and what a form does. Every route goes through the guard by itself, so that the app
// can be mounted beside LangGraph's own routes and touches none of them.
import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { InvalidOptionError, isLonghaulError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { knownOptions } from "../core/options.js";
import type { Ledger } from "../langgraph/ledger.js";
import { DATABASE, databaseOf, type OpenedLedger } from "../openLedger.js";
import { ledgerNow } from "../postgres/runs.js";
import { type BackgroundSweeper, sweepHere } from "../worker/sweepHere.js";
import { addApprovalRoutes } from "./approvalRoutes.js";
import { Csrf } from "./csrf.js";
import { addDoor } from "./door.js";
import { Guard, problem } from "./guard.js";
import { addRunRoutes } from "./runRoutes.js";
import { Sessions } from "./session.js";
import { explain, type Site } from "./site.js";
import { STYLE, STYLE_PATH } from "./style.js";
import { addTriggerRoutes, type Startable } from "./triggerRoutes.js";
import { type Authenticate, checkUser, type User } from "./user.js";

export interface InboxOptions {
  readonly ledger: Ledger;
  /**
   * Says who sent a request, from its headers or cookies; undefined for nobody. What it answers is trusted: the id is
   * recorded with every decision, and approvals name ids and roles.
   * @default LangGraph's own authentication where there is one; else the one who has the printed one-time token, on loopback alone
   */
  readonly authenticate?: Authenticate;
  /**
   * Signs the tokens of forms, 32 characters or more. Give several processes behind one address the same.
   * @default random, made anew at every start
   */
  readonly secret?: string;
  /** Who the one with the printed token is. @default { id: "local" } */
  readonly user?: User;
  /**
   * Looks for due work while the app is up: deadlines of approvals, dead runs. Threads that are due are run by workers.
   * @default true
   */
  readonly sweep?: boolean;
  /** Durable graphs that `POST /api/runs` may start, by the names that requests give. @default none */
  readonly graphs?: Startable;
  /** Told one line: the address with the one-time token, where there is one. @default a line on stderr */
  readonly onLine?: (line: string) => void;
}

const OPTIONS = ["ledger", "authenticate", "secret", "user", "sweep", "graphs", "onLine"];
/** What a guess would need for ever to find. */
const SECRET_MIN = 32;

/**
 * The web app: an inbox of approvals, pages of runs with their costs, and a JSON API for decisions. Mount it as `http.app` of
 * langgraph.json, in a server of your own, or run `longhaul inbox`.
 *
 * Without `authenticate`, and without LangGraph's authentication, it answers on loopback alone, to whoever has the one-time
 * token it prints.
 *
 * @throws InvalidOptionError for options that cannot be; DatabaseError in production where nothing says where the database is.
 * @example
 * export const app = inboxApp({ ledger, authenticate: (request) => userOf(request.headers.get("authorization")) });
 */
export function inboxApp(options: InboxOptions): Hono {
  return createInbox(options).app;
}

interface Inbox {
  readonly app: Hono;
  readonly sessions: Sessions;
  readonly sweeper: BackgroundSweeper | undefined;
}

/** @internal The app, and what a server of ours needs beside it. */
export function createInbox(options: InboxOptions, now: () => number = Date.now): Inbox {
  knownOptions("inboxApp", options, OPTIONS);
  const { ledger, authenticate, secret, user = { id: "local" }, sweep = true, graphs = {}, onLine = warn } = options;
  if (typeof (ledger as Partial<OpenedLedger> | undefined)?.[DATABASE] !== "function")
    throw new InvalidOptionError("Expected `ledger` to be one that openLedger made.");
  if (authenticate !== undefined && typeof authenticate !== "function")
    throw new InvalidOptionError("Expected `authenticate` to be a function of a request.");
  if (secret !== undefined && !(typeof secret === "string" && secret.length >= SECRET_MIN))
    throw new InvalidOptionError(`Expected \`secret\` to have ${SECRET_MIN} characters or more.`);
  if (typeof sweep !== "boolean") throw new InvalidOptionError("Expected `sweep` to be a boolean.");
  const sessions = new Sessions(checkUser(user), now);
  const guard = new Guard({ authenticate, sessions, csrf: new Csrf(secret, now) });
  const site: Site = { ledger, guard, database: () => databaseOf(ledger) };
  const app = new Hono();
  app.get(
    STYLE_PATH,
    guard.open((c) => {
      c.header("cache-control", "public, max-age=31536000, immutable");
      return c.body(STYLE, 200, { "content-type": "text/css; charset=utf-8" });
    }),
  );
  app.get(
    "/healthz",
    guard.open(async (c) => {
      try {
        await ledgerNow(await site.database());
        return c.json({ ok: true });
      } catch {
        return c.json({ ok: false, error: "The database cannot be reached." }, 503);
      }
    }),
  );
  addDoor(app, guard, sessions, onLine);
  addApprovalRoutes(app, site);
  addRunRoutes(app, site);
  addTriggerRoutes(app, site, graphs);
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse();
    const { status, message } = explain(error);
    if (!isLonghaulError(error))
      onLine(`longhaul inbox: ${redact(error instanceof Error ? (error.stack ?? error.message) : String(error))}`);
    if (c.req.path.startsWith("/api/")) {
      return c.json({ error: isLonghaulError(error) ? error.code : "ERROR", message }, status);
    }
    return problem(c, status, status === 404 ? "Not found" : "That did not work", message);
  });
  return { app, sessions, sweeper: sweep ? sweepHere(ledger) : undefined };
}

function warn(line: string): void {
  process.stderr.write(`${line}\n`);
}
