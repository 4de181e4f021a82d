// What the pages show, and what they never show; what their forms do.
import { Hono } from "hono";
import { cors } from "hono/cors";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf, durable } from "../../src/index.js";
import { type InboxServer, inboxApp } from "../../src/server/index.js";
import { runPath } from "../../src/server/pages/html.js";
import { nodeGraph } from "../budget/nodeGraph.js";
import { oneNode, reset, status, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { writeThread } from "../support/paidSteps.js";
import { startScript } from "../support/script.js";
import { type Browser, signIn, startInbox } from "./harness.js";
import { payment } from "./paymentGraph.js";

let db: TestDatabase;
let server: InboxServer;
let ann: Browser;
beforeAll(async () => {
  db = await testDatabase();
  server = await startInbox({ ledger: db.openLedger(), user: { id: "ann", roles: ["editor"] } });
  ann = await signIn(server);
});

const textOf = async (path: string) => (await ann.get(path)).text();
const openOf = async (threadId: string) =>
  (await approvalsOf(db.openLedger(), { status: "pending", threadId }))[0]?.id ?? "";

const HOSTILE = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>&lt;`;
/** Turns the text that follows it round. */
const TURNED = "report\u202Egnp.exe";

describe("names that somebody chose", () => {
  it("are shown as they are, and run nothing: thread ids, nodes, steps, actions, descriptions, comments, users", async () => {
    const ledger = db.openLedger();
    await payment(ledger, { action: HOSTILE, description: HOSTILE }).graph.invoke({ amount: 1 }, thread(HOSTILE));
    await writeThread(db, `${HOSTILE}/steps`, [
      { node: HOSTILE, name: HOSTILE, superstep: 1, startedAt: "2026-03-01T03:00:00Z", state: "FAILED_PERMANENT" },
      { node: HOSTILE, superstep: 2, startedAt: "2026-03-01T03:00:00Z", model: HOSTILE, costNanoUsd: 1n },
    ]);
    const id = await openOf(HOSTILE);
    await ann.submit(`/inbox/approvals/${id}/decide`, { status: "rejected", comment: HOSTILE });
    const paths = [
      "/inbox?status=rejected",
      `/inbox/approvals/${id}`,
      "/runs",
      runPath(HOSTILE),
      runPath(`${HOSTILE}/steps`),
      `/inbox?thread=${encodeURIComponent(HOSTILE)}&status=${encodeURIComponent(HOSTILE)}`,
      `/runs/${encodeURIComponent(`${HOSTILE} of nobody`)}`,
      `/inbox/login?token=${encodeURIComponent(HOSTILE)}`,
      `/runs?done=${encodeURIComponent(HOSTILE)}`,
    ];
    for (const path of paths) {
      const text = await textOf(path);
      expect([path, text.match(/<script|<img/i)]).toEqual([path, null]);
    }
    expect(await textOf(runPath(`${HOSTILE}/steps`))).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  });

  it("cannot turn the text around them, or hide", async () => {
    await writeThread(db, TURNED, [{ node: "a\u200bb", superstep: 1, startedAt: "2026-03-01T03:00:00Z" }]);
    const text = await textOf(runPath(TURNED));
    expect(text).toContain("report\\u{202e}gnp.exe");
    expect(text).toContain("a\\u{200b}b");
  });

  it("lead to their own page, however odd they are", async () => {
    for (const id of ["a/b", "..", ".", "?x=1", "#x", "%2e%2e", "ä 日本 😀", "a+b c", "crons", "x".repeat(500)]) {
      await writeThread(db, id, [{ node: "node", name: "a step", superstep: 1, startedAt: "2026-03-01T03:00:00Z" }]);
      const answer = await ann.get(runPath(id));
      expect([id, answer.status, (await answer.text()).includes("a step")]).toEqual([id, 200, true]);
    }
  });
});

describe("an address that is nobody's", () => {
  it.each([
    "/runs/nobody",
    "/runs/%00",
    "/runs/%",
    "/runs/%ff%fe",
    "/runs?thread=",
    "/inbox/approvals/nobody",
    "/inbox/approvals/%00",
    "/inbox/approvals/..%2f..%2fetc",
    `/inbox/approvals/${"0".repeat(32)}`,
    `/inbox/approvals/${"9".repeat(4000)}`,
    "/nothing",
    "/inbox/",
  ])("is a page that says so: %s", async (path) => {
    const answer = await ann.get(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/html; charset=UTF-8"]);
    expect(await answer.text()).toContain("To the inbox");
  });

  it("changes nothing when a form is sent there", async () => {
    const said = { status: "approved" };
    expect((await ann.submit("/inbox/approvals/nobody/decide", said)).status).toBe(404);
    expect((await ann.submit("/inbox/settle", { key: "x", thread: "x", outcome: "keep" })).status).toBe(400);
    expect((await ann.submit("/inbox/settle", { key: "0".repeat(64), thread: "x", outcome: "keep" })).status).toBe(404);
    expect((await ann.submit("/inbox/settle", { key: "0".repeat(64), thread: "x", outcome: "yes" })).status).toBe(400);
    expect((await ann.submit("/inbox/raise", { thread: "nobody", scope: "nobody", usd: "1" })).status).toBe(404);
    expect((await ann.submit("/inbox/redrive", { thread: "nobody" })).status).toBe(404);
  });

  it("takes numbers that are none for no number", async () => {
    for (const path of [
      "/runs?page=-1",
      "/runs?page=9e9",
      "/runs?page=x",
      "/runs?state=x",
      `${runPath("a/b")}?after=-5`,
    ]) {
      expect([path, (await ann.get(path)).status]).toEqual([path, 200]);
    }
  });
});

describe("what steps were given and came back with", () => {
  it("stands on no page: no inputs, outputs, prompts or secrets", async () => {
    const ledger = db.openLedger();
    const graph = oneNode(ledger, (step) =>
      step.write("send", { body: "SECRET-INPUT" }, async () => {
        throw Object.assign(status(422), {
          message: "refused for sk-live-1234567890abcdef: token Bearer abcdefghijklmnop",
        });
      }),
    );
    await graph.invoke({ log: [] }, thread("secret")).catch(() => {});
    await writeThread(db, "secret-bodies", [
      { node: "n", superstep: 1, startedAt: "2026-03-01T03:00:00Z", model: "m" },
    ]);
    for (const path of ["/runs", "/runs/secret", "/runs/secret-bodies", "/inbox"]) {
      const text = await textOf(path);
      expect([path, text.match(/SECRET|sk-live|abcdefghijklmnop/)]).toEqual([path, null]);
    }
  });

  it("redacts keys in what is to be approved, and lets nobody send the redacted text back", async () => {
    const ledger = db.openLedger();
    const { graph } = payment(ledger, { action: "call", description: "with Bearer abcdefghijklmnop" });
    await graph.invoke({ amount: "sk-live-1234567890abcdef" as never }, thread("keys"));
    const text = await textOf(`/inbox/approvals/${await openOf("keys")}`);
    expect(text).not.toMatch(/sk-live|abcdefghijklmnop/);
    expect(text).toContain("[redacted]");
    expect(text).toContain("longhaul approvals edit");
    expect(text).not.toContain("<textarea");
  });
});

describe("the inbox", () => {
  it("shows what waits with its deadline and its arguments, to those who may decide with the forms", async () => {
    const ledger = db.openLedger();
    await payment(ledger, { action: "ask-editors", approvers: ["role:editor"], timeoutMs: 3_600_000 }).graph.invoke(
      { amount: 7 },
      thread("editors"),
    );
    await payment(ledger, { action: "ask-bob", approvers: ["bob"] }).graph.invoke({ amount: 8 }, thread("bobs"));
    const all = await textOf("/inbox");
    expect(all).toContain("ask-bob");
    expect(all).toMatch(/59 min \d+ s left<\/strong>, then it is refused/);
    expect(all).toContain("&quot;amount&quot;: 7");
    const mine = await textOf("/inbox?mine=1");
    expect(mine).toContain("ask-editors");
    expect(mine).not.toContain("ask-bob");
    const bobs = await openOf("bobs");
    expect(await textOf(`/inbox/approvals/${bobs}`)).not.toContain('value="approved"');
    expect((await ann.submit(`/inbox/approvals/${bobs}/decide`, { status: "approved" })).status).toBe(403);
    expect(await textOf(`/inbox/approvals/${bobs}`)).toContain("refused by <bdi>ann</bdi>");
  });

  it("shows what an edit changes before it counts, and refuses one that does not fit", async () => {
    await payment(db.openLedger(), { action: "edit-me" }).graph.invoke({ amount: 9 }, thread("edited"));
    const path = `/inbox/approvals/${await openOf("edited")}`;
    const args = JSON.stringify({ amount: 6, to: "ACC-1", currency: "EUR" });
    const review = await ann.submit(`${path}/review`, { args, comment: "less" });
    expect(review.status).toBe(200);
    const text = await review.text();
    expect(text).toContain("not decided yet");
    expect(text).toMatch(/class="out".*&quot;amount&quot;: 9.*class="in".*&quot;amount&quot;: 6/s);
    expect(await openOf("edited")).not.toBe("");
    expect((await ann.submit(`${path}/review`, { args: "{" })).status).toBe(400);
    await ann.submit(`${path}/decide`, { status: "edited", args, comment: "less" });
    expect((await approvalsOf(db.openLedger(), { threadId: "edited" }))[0]).toMatchObject({
      status: "edited",
      editedArgs: { amount: 6 },
      comment: "less",
      decidedBy: "ann",
    });
    const again = await ann.submit(`${path}/decide`, { status: "rejected" });
    expect(again.headers.get("location")).toBe(`${path}?done=already`);
    expect(await textOf(`${path}?done=already`)).toContain("Somebody decided before");
  });

  it("lets nobody allow what this server cannot read", async () => {
    const turned = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0x5a);
    const bodyCodec = { encode: turned, decode: turned };
    await payment(db.openLedger({ bodyCodec }), { action: "coded" }).graph.invoke({ amount: 1 }, thread("coded"));
    const text = await textOf(`/inbox/approvals/${await openOf("coded")}`);
    expect(text).toContain("that this server does not have");
    expect(text).not.toContain('value="approved"');
    expect((await ann.get("/inbox")).status).toBe(200);
  });

  it("offers nothing once the deadline is over, though nobody has swept", async () => {
    const fresh = await testDatabase();
    const ledger = fresh.openLedger();
    const late = await signIn(await startInbox({ ledger, user: { id: "ann" } }));
    await payment(ledger, { timeoutMs: 1000 }).graph.invoke({ amount: 1 }, thread("late"));
    await fresh.advance(2000);
    const text = await (await late.get("/inbox")).text();
    expect(text).toContain("Time is over");
    expect(text).not.toContain('value="approved"');
  });
});

describe("a run's page", () => {
  it("takes a person's word on a write whose outcome is not known", async () => {
    const ledger = db.openLedger();
    const graph = oneNode(ledger, (step) =>
      step.write("pay", {}, async () => {
        throw reset();
      }),
    );
    await graph.invoke({ log: [] }, thread("doubt"));
    const key = /name="key" value="(\w{64})"/.exec(await textOf("/runs/doubt"))?.[1] ?? "";
    const settle = (fields: Record<string, string>) =>
      ann.submit("/inbox/settle", { key, thread: "doubt", ...fields }, "/runs/doubt");
    expect((await settle({ outcome: "write-off" })).status).toBe(400);
    expect((await settle({ outcome: "happened", receipt: "po_1" })).status).toBe(400);
    expect((await settle({ outcome: "did-not-happen" })).headers.get("location")).toBe("/runs/doubt?done=not-yet");
    expect((await settle({ outcome: "happened", receipt: '"po_1"' })).headers.get("location")).toBe(
      "/runs/doubt?done=settled",
    );
    expect((await settle({ outcome: "happened", receipt: '"po_2"' })).headers.get("location")).toBe(
      "/runs/doubt?done=already-settled",
    );
    expect(await graph.invoke(null, thread("doubt"))).toEqual({ log: ["po_1"] });
    const [event] = await db.sql("select actor from longhaul.step_events where reason like 'happened%'");
    expect(event).toEqual({ actor: "ann" });
  });

  it("raises a budget that is used up, by who is signed in", async () => {
    const graph = nodeGraph(
      db.openLedger(),
      async (_state, runtime) => {
        await durable(runtime).step.write("once", {}, async () => 1);
        return {};
      },
      { modelCalls: 0 },
    );
    await graph.invoke({ log: [] }, thread("poor"));
    expect(await textOf("/runs/poor")).toContain("model calls");
    const raise = (fields: Record<string, string>) =>
      ann.submit("/inbox/raise", { thread: "poor", scope: "poor", ...fields }, "/runs/poor");
    expect((await raise({ modelCalls: "two" })).status).toBe(400);
    expect((await raise({ modelCalls: "-2" })).status).toBe(400);
    expect((await raise({})).status).toBe(400);
    expect((await raise({ modelCalls: "3", reason: "more" })).headers.get("location")).toBe("/runs/poor?done=raised");
    expect(await textOf("/runs/poor")).toMatch(/0 of 3.*raised.*ann/s);
  });

  it("lets a failed thread go on", async () => {
    let broken = true;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write("book", {}, async () => {
        if (broken) throw status(422);
        return "booked";
      }),
    );
    await graph.invoke({ log: [] }, thread("failed")).catch(() => {});
    broken = false;
    const answer = await ann.submit("/inbox/redrive", { thread: "failed" }, "/runs/failed");
    expect(answer.headers.get("location")).toBe("/runs/failed?done=redriven");
    expect(await graph.invoke(null, thread("failed"))).toEqual({ log: ["booked"] });
  });

  it("cancels a thread, says who did, and lets it go on", async () => {
    const { graph, paid } = payment(db.openLedger());
    await graph.invoke({ amount: 3 }, thread("stopped"));
    const answer = await ann.submit("/inbox/cancel", { thread: "stopped", reason: "wrong customer" }, "/runs/stopped");
    expect(answer.headers.get("location")).toBe("/runs/stopped?done=cancelled");
    expect(await textOf("/runs/stopped")).toMatch(/Cancelled<\/h2>.*ann.*wrong customer/s);
    expect((await ann.submit("/inbox/cancel", { thread: "nobody" })).status).toBe(404);
    expect(await openOf("stopped")).toBe("");
    const lifted = await ann.submit("/inbox/redrive", { thread: "stopped" }, "/runs/stopped");
    expect(lifted.headers.get("location")).toBe("/runs/stopped?done=redriven");
    expect(await textOf("/runs/stopped")).not.toContain("Cancelled</h2>");
    expect(paid).toEqual([]);
  });

  it("shows a long thread in parts, and what is due", async () => {
    const steps = Array.from({ length: 450 }, (_, i) => ({
      ...{ node: "n", name: `step-${i + 1}.`, superstep: i },
      startedAt: new Date(Date.UTC(2026, 2, 1, 3) + i * 5000).toISOString(),
    }));
    await writeThread(db, "long", steps);
    const numbers = async (path: string) =>
      [...(await textOf(path)).matchAll(/class="n">(\d+)</g)].map(([, n]) => Number(n));
    const last = await numbers("/runs/long");
    expect([last[0], last.at(-1), last.length]).toEqual([251, 450, 200]);
    const first = await numbers("/runs/long?after=0");
    expect([first[0], first.at(-1)]).toEqual([1, 200]);
    expect(await textOf("/runs/long?after=0")).toContain("step-1.");
  });

  it("warns of due work that nobody has looked for, and not before a minute is over", async () => {
    const fresh = await testDatabase();
    const browser = await signIn(await startInbox({ ledger: fresh.openLedger() }));
    await fresh.sql("insert into longhaul.wakes values ('due', longhaul.ledger_now() - interval '50 s', 'retry')");
    expect(await (await browser.get("/runs")).text()).toContain("Nobody has looked for due work yet");
    await fresh.sql("insert into longhaul.sweeps (swept_at, swept_by) values (longhaul.ledger_now(), 'test')");
    expect(await (await browser.get("/runs")).text()).not.toContain("Is a worker running?");
    await fresh.advance(11_000);
    expect(await (await browser.get("/runs")).text()).toContain("Is a worker running?");
    await fresh.advance(60_000);
    expect(await (await browser.get("/runs")).text()).toContain("Nobody has looked for due work for 1 min 11 s");
  });
});

describe("beside LangGraph's own routes", () => {
  /** As the LangGraph server mounts an app: behind its own CORS and authentication, before its own routes. */
  function mounted(auth: unknown, mountedApp = inboxApp({ ledger: db.openLedger(), sweep: false, onLine: () => {} })) {
    const host = new Hono<{ Variables: { auth: unknown } }>();
    host.use(cors());
    if (auth !== undefined)
      host.use(async (c, next) => {
        c.set("auth", auth);
        await next();
      });
    host.route("/", mountedApp);
    host.post("/runs", (c) => c.text("LangGraph's"));
    host.get("/ok", (c) => c.text("LangGraph's"));
    return (path: string, init: RequestInit = {}) =>
      host.request(`http://127.0.0.1:2024${path}`, { ...init, headers: { host: "127.0.0.1:2024", ...init.headers } });
  }

  it("takes the user that LangGraph's authentication found", async () => {
    const user = { identity: "carol", permissions: ["editor"], is_authenticated: true };
    const send = mounted({ user, scopes: ["editor"] });
    expect(await (await send("/api/session")).json()).toMatchObject({ user: { id: "carol", roles: ["editor"] } });
  });

  it("takes nobody for Studio's user, whom any page can name by a header", async () => {
    const send = mounted({ user: { kind: "StudioUser", identity: "langgraph-studio-user", is_authenticated: true } });
    expect((await send("/api/approvals")).status).toBe(401);
    expect((await send("/inbox")).status).toBe(401);
    expect((await send("/inbox/login")).status).toBe(200);
  });

  it("opens by the token alone, on loopback alone, where there is no authentication", async () => {
    const send = mounted(undefined);
    expect((await send("/inbox")).headers.get("location")).toBe("/inbox/login");
    expect((await send("/inbox", { headers: { host: "evil.example" } })).status).toBe(403);
  });

  it("leaves LangGraph's routes alone", async () => {
    const send = mounted(undefined);
    expect(await (await send("/runs", { method: "POST" })).text()).toBe("LangGraph's");
    expect(await (await send("/ok")).text()).toBe("LangGraph's");
  });
});

describe("longhaul inbox", () => {
  it("prints where it is as JSON, opens once, and ends when it is told to", async () => {
    const { child, ended } = startScript("src/cli/main.ts", [
      "inbox",
      "--port",
      "0",
      "--json",
      "--by",
      "dora",
      "--url",
      db.url,
    ]);
    const line = await new Promise<string>((resolve) => child.stdout?.once("data", (data) => resolve(String(data))));
    const { url, loginUrl } = JSON.parse(line) as { url: string; loginUrl: string };
    const browser = await signIn({ url, loginUrl, close: async () => {} });
    expect(await (await browser.get("/api/session")).json()).toMatchObject({ user: { id: "dora" } });
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true });
    child.kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  it("sweeps while it is up: a deadline decides without a worker", async () => {
    const fresh = await testDatabase();
    const ledger = fresh.openLedger();
    await payment(ledger, { timeoutMs: 1000 }).graph.invoke({ amount: 1 }, thread("swept"));
    await fresh.advance(2000);
    await startInbox({ ledger, sweep: true });
    await expect.poll(async () => (await approvalsOf(ledger, { threadId: "swept" }))[0]?.status).toBe("expired");
  });

  it("listens on no address that others reach", async () => {
    const { ended } = startScript("src/cli/main.ts", ["inbox", "--host", "0.0.0.0", "--json", "--url", db.url]);
    expect(await ended).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
  });
});
