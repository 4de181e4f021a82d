// Signing in and out, where the app has no users of its own.
import type { Context, Hono } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import type { Guard } from "./guard.js";
import { loginPage } from "./pages/login.js";
import { SESSION_MS, type Sessions } from "./session.js";

export function addDoor(app: Hono, guard: Guard, sessions: Sessions, onLine: (line: string) => void): void {
  let told = false;
  app.get(
    "/inbox/login",
    guard.open((c) => {
      // Mounted in somebody's server, nothing was printed at its start.
      if (!told && c.req.query("token") === undefined) {
        told = true;
        const address = loginAddress(sessions, new URL(c.req.url).origin);
        if (address !== undefined) onLine(`longhaul inbox: sign in, once, at ${address}`);
      }
      return c.html(loginPage(c.req.query("token")));
    }),
  );
  app.post(
    "/inbox/login",
    guard.door((c, form) => {
      const session = sessions.exchange(form.get("token")?.trim() ?? "");
      if (session === undefined) return c.html(loginPage(undefined, true), 403);
      setCookie(c, sessions.cookie, session.id, { ...cookieOptions(c), maxAge: SESSION_MS / 1000 });
      return c.redirect("/inbox", 303);
    }),
  );
  app.post(
    "/inbox/logout",
    guard.form((c, { session }) => {
      if (session !== undefined) sessions.end(session.id);
      deleteCookie(c, sessions.cookie, cookieOptions(c));
      return c.redirect("/inbox/login", 303);
    }),
  );
}

/** Where the one-time token opens the inbox; undefined once it was used. */
export function loginAddress({ token }: Sessions, origin: string): string | undefined {
  return token === undefined ? undefined : `${origin}/inbox/login?token=${token}`;
}

function cookieOptions(c: Context) {
  return { httpOnly: true, sameSite: "Strict", path: "/", secure: new URL(c.req.url).protocol === "https:" } as const;
}
