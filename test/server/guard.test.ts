// Who gets in, and what makes a request count: the one-time token, sessions, the origin, the token of forms, the host's name.
import { request } from "node:http";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf } from "../../src/index.js";
import { createInbox } from "../../src/server/app.js";
import { type InboxServer, inboxApp, serveInbox, type User } from "../../src/server/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { Browser, signIn, startInbox } from "./harness.js";
import { payment } from "./paymentGraph.js";

let db: TestDatabase;
let server: InboxServer;
let ann: Browser;
beforeAll(async () => {
  db = await testDatabase();
  server = await startInbox({ ledger: db.openLedger(), user: { id: "ann", roles: ["editor"] } });
  ann = await signIn(server);
});

/** A thread that asks, and the request. */
async function asked(threadId: string): Promise<string> {
  const ledger = db.openLedger();
  await payment(ledger).graph.invoke({ amount: 5 }, thread(threadId));
  const [approval] = await approvalsOf(ledger, { status: "pending", threadId });
  return approval?.id ?? "";
}

const statusOf = async (id: string) =>
  (await db.sql<{ status: string }>("select status from longhaul.approvals where id = $1", [id]))[0]?.status;

describe("the door", () => {
  it("shows nothing to somebody who is not known, and sends them to the door, whatever they asked for", async () => {
    const stranger = new Browser(server.url);
    for (const path of ["/inbox", "/runs", "/runs/x?next=https://evil.example", "/inbox/approvals/x"]) {
      const answer = await stranger.get(path);
      expect([answer.status, answer.headers.get("location")]).toEqual([303, "/inbox/login"]);
    }
    expect((await stranger.get("/api/approvals")).status).toBe(401);
    expect((await stranger.post("/inbox/settle", {})).status).toBe(303);
  });

  it("opens once for the printed token, which looking at the page does not use up", async () => {
    const own = await startInbox({ ledger: db.openLedger() });
    const first = new Browser(own.url);
    await first.get(own.loginUrl);
    const page = await (await first.get(own.loginUrl)).text();
    const token = /name="token" value="([^"]+)"/.exec(page)?.[1] ?? "";
    const opened = await first.post("/inbox/login", { token });
    expect([opened.status, opened.headers.get("location")]).toEqual([303, "/inbox"]);
    expect(opened.headers.getSetCookie()[0]).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
    expect((await first.get("/inbox")).status).toBe(200);
    const second = new Browser(own.url);
    expect((await second.post("/inbox/login", { token })).status).toBe(403);
    expect(second.cookies).toBe("");
    expect((await second.post("/inbox/login", { token: "" })).status).toBe(403);
  });

  it("ends a session when its time is over and when its user signs out, and takes no form of it any more", async () => {
    let now = Date.now();
    const { app, sessions } = createInbox({ ledger: db.openLedger(), sweep: false, onLine: () => {} }, () => now);
    const headers = {
      host: "127.0.0.1",
      origin: "http://127.0.0.1",
      "content-type": "application/x-www-form-urlencoded",
    };
    const send = (path: string, extra: object = {}, body?: string) =>
      app.request(`http://127.0.0.1${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { ...headers, ...extra },
        ...(body === undefined ? {} : { body }),
      });
    const opened = await send("/inbox/login", {}, `token=${sessions.token}`);
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    const csrf = ((await (await send("/api/session", { cookie })).json()) as { csrf: string }).csrf;
    now += 11 * 3_600_000;
    expect((await send("/inbox", { cookie })).status).toBe(200);
    now += 3_600_001;
    expect((await send("/inbox", { cookie })).headers.get("location")).toBe("/inbox/login");
    expect((await send("/inbox/logout", { cookie }, `csrf=${csrf}`)).headers.get("location")).toBe("/inbox/login");
  });

  it("signs out", async () => {
    const own = await startInbox({ ledger: db.openLedger() });
    const browser = await signIn(own);
    const { cookies } = browser;
    await browser.submit("/inbox/logout", {});
    expect((await new Browser(own.url).get("/inbox", { cookie: cookies })).status).toBe(303);
  });
});

describe("a request that changes something", () => {
  it("counts with the token of a page of ours", async () => {
    const id = await asked("counts");
    const answer = await ann.submit(`/inbox/approvals/${id}/decide`, { status: "approved" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/inbox/approvals/${id}?done=approved`]);
    expect(await statusOf(id)).toBe("approved");
  });

  it("is refused without that token, with a wrong one, an expired one, or another session's", async () => {
    const id = await asked("no-token");
    const path = `/inbox/approvals/${id}/decide`;
    const other = await signIn(await startInbox({ ledger: db.openLedger() }));
    const good = await ann.csrf();
    const expired = `${Date.now() - 1}.${good.split(".")[1]}`;
    const later = `${Date.now() + 1e9}.${good.split(".")[1]}`;
    for (const csrf of ["", "x", expired, later, await other.csrf(), `${good}x`]) {
      const answer = await ann.post(path, { csrf, status: "approved" });
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain("reload the page");
    }
    expect(await statusOf(id)).toBe("pending");
  });

  it("is refused when another site's page sent it, or nothing says whose did", async () => {
    const id = await asked("elsewhere");
    const fields = { csrf: await ann.csrf(), status: "approved" };
    const path = `/inbox/approvals/${id}/decide`;
    const { cookies } = ann;
    const elsewhere: Record<string, string>[] = [
      { origin: "https://evil.example", "sec-fetch-site": "cross-site" },
      { origin: "https://evil.example" },
      { origin: "http://127.0.0.1:1" },
      { origin: `${server.url}.evil.example` },
      { origin: "null" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      {},
    ];
    for (const headers of elsewhere) {
      const answer = await fetch(new URL(path, server.url), {
        method: "POST",
        headers: { cookie: cookies, ...headers },
        body: new URLSearchParams(fields),
        redirect: "manual",
      });
      expect([answer.status, headers]).toEqual([403, headers]);
    }
    expect(await statusOf(id)).toBe("pending");
    const own = await fetch(new URL(path, server.url), {
      method: "POST",
      headers: { cookie: cookies, origin: "null", "sec-fetch-site": "same-origin" },
      body: new URLSearchParams(fields),
      redirect: "manual",
    });
    expect(own.status).toBe(303);
  });

  it("needs the same when it is JSON, and no form counts as JSON", async () => {
    const id = await asked("json");
    const path = `/api/approvals/${id}/decide`;
    expect((await ann.json(path, { status: "approved" })).status).toBe(403);
    const { csrf, user } = (await (await ann.get("/api/session")).json()) as { csrf: string; user: User };
    expect(user).toEqual({ id: "ann", roles: ["editor"] });
    const headers = { "x-csrf-token": csrf };
    expect((await ann.json(path, { status: "approved" }, { ...headers, origin: "https://evil.example" })).status).toBe(
      403,
    );
    expect((await ann.json(path, { status: "approved" }, { ...headers, "content-type": "text/plain" })).status).toBe(
      400,
    );
    expect((await ann.json(path, { status: "yes" }, headers)).status).toBe(400);
    expect((await ann.json(path, null, headers)).status).toBe(400);
    expect(await statusOf(id)).toBe("pending");
    const bearer = { authorization: "Bearer x" };
    expect((await new Browser(server.url).json(path, { status: "approved" }, bearer)).status).toBe(401);
    expect((await ann.json(path, { status: "approved" }, headers)).status).toBe(200);
    const again = await ann.json(path, { status: "rejected" }, headers);
    expect([again.status, await again.json()]).toMatchObject([
      409,
      { result: "already-decided", winner: { status: "approved", decidedBy: "ann" } },
    ]);
  });

  it("is answered by cookies to no other page of this machine, whatever the server around lets read", async () => {
    for (const site of ["same-site", "cross-site"]) {
      const answer = await ann.get("/api/session", { "sec-fetch-site": site, origin: "http://127.0.0.1:3000" });
      expect([answer.status, await answer.text()]).toEqual([403, expect.not.stringContaining("csrf")]);
    }
    expect((await ann.get("/api/session", { "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it("tells nothing of an error that is not ours, and logs it without its secrets", async () => {
    const logged: string[] = [];
    const app = inboxApp({
      ledger: db.openLedger(),
      sweep: false,
      onLine: (line) => logged.push(line),
      authenticate: () => {
        throw new Error("the login is away: Bearer abcdefghijklmnop");
      },
    });
    for (const path of ["/inbox", "/api/approvals"]) {
      const answer = await app.request(`https://inbox.example${path}`);
      expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining("away")]);
    }
    expect(logged.join()).toContain("the login is away");
    expect(logged.join()).not.toContain("abcdefghijklmnop");
  });

  it("is refused when it is too long to be a form of ours", async () => {
    const answer = await ann.submit("/inbox/settle", { reason: "x".repeat(600_000) });
    expect(answer.status).toBe(413);
  });
});

describe("the host's name", () => {
  it("is loopback's, or the page says so: a name that points here is not ours", async () => {
    const { port } = new URL(server.url);
    const statusAs = (host: string) =>
      new Promise<[number | undefined, string]>((resolve, reject) => {
        const sent = request({ port, host: "127.0.0.1", path: "/inbox/login", headers: { host } }, (answer) => {
          let text = "";
          answer.on("data", (data) => {
            text += data;
          });
          answer.on("end", () => resolve([answer.statusCode, text]));
        });
        sent.on("error", reject);
        sent.end();
      });
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "localhost.evil.example"]) {
      expect(await statusAs(host)).toEqual([403, expect.stringContaining("127.0.0.1 or localhost")]);
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect((await statusAs(host))[0]).toBe(200);
    }
  });

  it("is loopback's to listen on, too", async () => {
    for (const host of ["0.0.0.0", "::", "192.168.1.4", "example.com"]) {
      await expect(serveInbox({ ledger: db.openLedger(), port: 0, host })).rejects.toThrow("loopback");
    }
  });
});

describe("every answer", () => {
  it("forbids scripts, frames and other sites' forms, and is not kept", async () => {
    for (const path of ["/inbox", "/inbox/login", "/runs", "/api/approvals", "/healthz"]) {
      const { headers } = await ann.get(path);
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      );
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("same-origin");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  it("has nothing in it that the policy would forbid", async () => {
    for (const path of ["/inbox", "/runs", "/inbox/login"]) {
      const text = await (await ann.get(path)).text();
      expect(text).not.toMatch(/<script|\sstyle=|\son\w+=|javascript:/i);
    }
  });
});

describe("an app with a hook", () => {
  const users: Record<string, User> = { "Bearer ann": { id: "ann", roles: ["editor"] }, "Bearer bob": { id: "bob" } };
  const host = "inbox.example";
  const make = () =>
    inboxApp({
      ledger: db.openLedger(),
      sweep: false,
      authenticate: (sent) =>
        users[sent.headers.get("authorization") ?? `Bearer ${sent.headers.get("x-test-cookie-user")}`],
    });
  const send = (
    app: ReturnType<typeof make>,
    path: string,
    init: RequestInit & { headers?: Record<string, string> } = {},
  ) => app.request(`https://${host}${path}`, { ...init, headers: { host, ...init.headers } });

  it("believes the hook, and nobody else", async () => {
    const app = make();
    expect((await send(app, "/inbox")).status).toBe(401);
    expect((await send(app, "/inbox", { headers: { authorization: "Bearer eve" } })).status).toBe(401);
    expect(await (await send(app, "/inbox", { headers: { authorization: "Bearer ann" } })).text()).toContain("ann");
  });

  it("lets a bearer decide by JSON, and no cookie without the token of a page", async () => {
    const app = make();
    const id = await asked("by-bearer");
    const path = `/api/approvals/${id}/decide`;
    const call = (headers: Record<string, string>) =>
      send(app, path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ status: "rejected", comment: "too dear" }),
      });
    const cookie = { cookie: "theirs=1", "x-test-cookie-user": "ann" };
    expect((await call({ ...cookie, origin: "https://evil.example" })).status).toBe(403);
    expect((await call(cookie)).status).toBe(403);
    expect((await call({ ...cookie, origin: `https://${host}` })).status).toBe(403);
    expect((await call({ authorization: "Bearer ann", origin: "https://evil.example" })).status).toBe(403);
    expect(await statusOf(id)).toBe("pending");
    const answer = await call({ authorization: "Bearer bob" });
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { result: "applied", winner: { status: "rejected", decidedBy: "bob", comment: "too dear" } },
    ]);
  });

  it("takes a form's token from its own user alone, also from another process with the same secret", async () => {
    const secret = "s".repeat(32);
    const authenticate = (sent: Request) => ({ id: sent.headers.get("x-user") ?? "" });
    const make = () => inboxApp({ ledger: db.openLedger(), authenticate, secret, sweep: false });
    const [one, two] = [make(), make()];
    const id = await asked("two-processes");
    const session = await one.request(`https://${host}/api/session`, { headers: { host, "x-user": "ann" } });
    const { csrf } = (await session.json()) as { csrf: string };
    const decideAs = async (user: string) => {
      const answer = await two.request(`https://${host}/inbox/approvals/${id}/decide`, {
        method: "POST",
        headers: { host, origin: `https://${host}`, "x-user": user },
        body: new URLSearchParams({ csrf, status: "approved" }),
      });
      return answer.status;
    };
    expect(await decideAs("eve")).toBe(403);
    expect(await decideAs("ann")).toBe(303);
  });

  it("refuses options that cannot be", () => {
    const ledger = db.openLedger();
    expect(() => inboxApp({ ledger, secret: "short" })).toThrow("32 characters");
    expect(() => inboxApp({ ledger: {} as never })).toThrow("openLedger");
    expect(() => inboxApp({ ledger, authenticate: "ann" as never })).toThrow("function");
    expect(() => inboxApp({ ledger, user: { id: "" } })).toThrow("id");
    expect(() => inboxApp({ ledger, autenticate: () => undefined } as never)).toThrow("autenticate");
  });
});
