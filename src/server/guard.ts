// What stands before every page and every call: headers that a browser enforces, the name the server was called by, where a
// request came from, who sent it, and proof that a page of ours made them send it. Anything that is not proven is refused.
import type { Context, Handler } from "hono";
import { getCookie } from "hono/cookie";
import type { Csrf } from "./csrf.js";
import { problemPage } from "./pages/problem.js";
import type { Session, Sessions } from "./session.js";
import { type Authenticate, checkUser, langGraphUser, type User } from "./user.js";
import type { Visitor } from "./visitor.js";

export type Form = URLSearchParams;
export type Page = (c: Context, visitor: Visitor) => Response | Promise<Response>;
export type Action<Body> = (c: Context, visitor: Visitor, body: Body) => Response | Promise<Response>;

export interface GuardParts {
  readonly authenticate: Authenticate | undefined;
  /** Of an app without a hook. */
  readonly sessions: Sessions;
  readonly csrf: Csrf;
}

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // Nothing goes to other sites. "no-referrer" would say no more, and make browsers send `Origin: null` with our own forms.
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** An edit of long arguments fits; a flood does not. */
const MAX_BODY = 512 * 1024;

export class Guard {
  constructor(readonly parts: GuardParts) {}

  /** For everybody: headers and the host alone. */
  open(page: (c: Context) => Response | Promise<Response>): Handler {
    return async (c) => {
      for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
      return this.#wrongHost(c) ?? page(c);
    };
  }

  /** A page for somebody who is known; others are sent to the door. */
  page(page: Page): Handler {
    return this.open(async (c) => {
      const visitor = await this.#visitor(c);
      return visitor === undefined ? this.#unknown(c) : page(c, visitor);
    });
  }

  /** To the door, always the same one: an address to go on to would be anybody's to choose. */
  #unknown(c: Context): Response | Promise<Response> {
    if (this.#usesTokens(c)) return c.redirect("/inbox/login", 303);
    return problem(c, 401, "Who are you?", "Sign in where this app is at home, then come back.");
  }

  /** A form of ours, sent by somebody who is known. */
  form(action: Action<Form>): Handler {
    return this.open(async (c) => {
      const refused = wrongOrigin(c);
      if (refused !== undefined) return problem(c, 403, "This came from elsewhere", refused);
      const visitor = await this.#visitor(c);
      if (visitor === undefined) return this.#unknown(c);
      const form = await readForm(c);
      if (form === undefined) return problem(c, 413, "That is too much", "Send less, as a plain form.");
      if (this.#proven(visitor, form.get("csrf") ?? undefined)) return action(c, visitor, form);
      return problem(
        c,
        403,
        "This form is too old",
        "Nothing was changed. Go back, reload the page, and send it again.",
      );
    });
  }

  /** A form of somebody who is not known yet. */
  door(action: (c: Context, form: Form) => Response | Promise<Response>): Handler {
    return this.open(async (c) => {
      const refused = wrongOrigin(c);
      if (refused !== undefined) return problem(c, 403, "This came from elsewhere", refused);
      const form = await readForm(c);
      return form === undefined ? problem(c, 413, "That is too much", "Send less, as a plain form.") : action(c, form);
    });
  }

  /** A question by JSON. A server around us may let every site read what it answers (CORS): cookies are no proof there. */
  ask(answer: Page): Handler {
    return this.open(async (c) => {
      const site = c.req.header("sec-fetch-site") ?? "none";
      if (site !== "same-origin" && site !== "none" && !saysItself(c)) {
        return c.json({ error: "WRONG_ORIGIN", message: "Only a page of this app may ask this by cookies." }, 403);
      }
      const visitor = await this.#visitor(c);
      return visitor === undefined
        ? c.json({ error: "UNAUTHENTICATED", message: "Say who you are." }, 401)
        : answer(c, visitor);
    });
  }

  /** A change by JSON. */
  call(action: Action<unknown>): Handler {
    return this.open(async (c) => {
      const refused = wrongOrigin(c);
      if (refused !== undefined) return c.json({ error: "WRONG_ORIGIN", message: refused }, 403);
      const visitor = await this.#visitor(c);
      if (visitor === undefined) return c.json({ error: "UNAUTHENTICATED", message: "Say who you are." }, 401);
      if (!(visitor.session === undefined && saysItself(c)) && !this.#proven(visitor, c.req.header("x-csrf-token"))) {
        const message =
          "Send the session's token as x-csrf-token, from GET /api/session; or who you are by a bearer token, without cookies.";
        return c.json({ error: "WRONG_CSRF_TOKEN", message }, 403);
      }
      const body = await readJson(c);
      return body === undefined
        ? c.json({ error: "INVALID_BODY", message: "Expected JSON, sent as application/json." }, 400)
        : action(c, visitor, body.value);
    });
  }

  async #visitor(c: Context): Promise<Visitor | undefined> {
    const { authenticate, sessions } = this.parts;
    if (authenticate !== undefined) {
      const user = await authenticate(c.req.raw);
      return user === undefined || user === null ? undefined : this.#known(checkUser(user));
    }
    const user = langGraphUser(c.get("auth"));
    if (user !== undefined) return this.#known(user);
    if (!this.#usesTokens(c)) return undefined;
    const session = sessions.find(getCookie(c, sessions.cookie));
    return session && this.#known(session.user, session);
  }

  #known(user: User, session?: Session): Visitor {
    return { user, session, csrf: this.parts.csrf.issue(subjectOf(user, session)) };
  }

  #proven({ user, session }: Visitor, token: string | undefined): boolean {
    return this.parts.csrf.check(subjectOf(user, session), token);
  }

  /** LangGraph's authentication, where there is one, leaves no room for tokens of ours. */
  #usesTokens(c: Context): boolean {
    return this.parts.authenticate === undefined && c.get("auth") === undefined;
  }

  /** A name that an attacker points at this machine makes a browser take us for their site. */
  #wrongHost(c: Context): Response | Promise<Response> | undefined {
    if (!this.#usesTokens(c) || isLoopback(c.req.header("host"))) return undefined;
    return problem(
      c,
      403,
      "Not by this name",
      "Without a way to know its users this app answers on this machine alone: call it as 127.0.0.1 or localhost.",
    );
  }
}

export function problem(c: Context, status: 400 | 401 | 403 | 404 | 409 | 413 | 500, title: string, text: string) {
  return c.html(problemPage({ title, text }), status);
}

function subjectOf(user: User, session: Session | undefined): string {
  return session === undefined ? `user ${user.id}` : `session ${session.id}`;
}

export function isLoopback(host: string | undefined): boolean {
  return /^(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?$/i.test(host ?? "");
}

/**
 * Why a request that changes something is not taken: it has to come from a page of this very host. What says neither
 * where it comes from is no browser of today.
 */
function wrongOrigin(c: Context): string | undefined {
  const site = c.req.header("sec-fetch-site");
  const origin = c.req.header("origin");
  if (site !== undefined && site !== "same-origin") return "Only a page of this app may send this.";
  if (origin !== undefined && origin !== "null") {
    return hostOf(origin) === hostOf(`${schemeOf(origin)}//${c.req.header("host")}`)
      ? undefined
      : "Only a page of this app may send this.";
  }
  if (site === "same-origin" || saysItself(c)) return undefined;
  return "Nothing says which page sent this. Use a browser of this decade, or send an Origin header.";
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}

/** A proxy that takes TLS off changes the scheme, and with it what port goes without saying. */
function schemeOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).protocol : "http:";
}

/** Who it is stands in a header that no browser adds by itself. */
function saysItself(c: Context): boolean {
  if (c.req.header("cookie") !== undefined) return false;
  return /^bearer\s/i.test(c.req.header("authorization") ?? "") || c.req.header("x-api-key") !== undefined;
}

async function readForm(c: Context): Promise<Form | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header("content-type") ?? "")) return undefined;
  const text = await readBody(c);
  return text === undefined ? undefined : new URLSearchParams(text);
}

async function readJson(c: Context): Promise<{ value: unknown } | undefined> {
  if (!/^application\/json\b/i.test(c.req.header("content-type") ?? "")) return undefined;
  const text = await readBody(c);
  try {
    return text === undefined ? undefined : { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Undefined for more than there is room for; the rest of it is not read. */
async function readBody(c: Context): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
