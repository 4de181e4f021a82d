// What strangers and users with bad intentions send: no value of any field makes the app fail, show what it must not, or change
// what was not asked.
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf } from "../../src/index.js";
import type { InboxServer } from "../../src/server/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type Browser, signIn, startInbox } from "./harness.js";
import { payment } from "./paymentGraph.js";

let db: TestDatabase;
let server: InboxServer;
let ann: Browser;
let id: string;
beforeAll(async () => {
  db = await testDatabase();
  const ledger = db.openLedger();
  server = await startInbox({ ledger, user: { id: "ann", roles: ["editor"] } });
  ann = await signIn(server);
  await payment(ledger).graph.invoke({ amount: 5 }, thread("target"));
  id = (await approvalsOf(ledger, { status: "pending" }))[0]?.id ?? "";
});

const HOSTILE = [
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "..",
  "../../etc/passwd",
  "%00",
  "%",
  "'; drop table longhaul.steps; --",
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "javascript:alert(1)",
  "\u202eevil",
  "x".repeat(100_000),
  "NaN",
  "-1",
  "1e309",
  "9007199254740993",
  "null",
  "__proto__",
  "constructor",
  "[object Object]",
  "\r\nset-cookie: a=b",
];
const snapshot = async () => ({
  approvals: await db.sql("select id, status, edited_args, deadline_at from longhaul.approvals order by id"),
  threads: await db.sql("select thread_id, state, cancel_requested_by from longhaul.threads order by 1"),
  budgets: await db.sql("select * from longhaul.budgets"),
});

describe("hostile values", () => {
  it("in an address are answered with less than 500, and nothing of them is run or changed", async () => {
    const before = await snapshot();
    for (const value of HOSTILE) {
      const encoded = encodeURIComponent(value.toWellFormed());
      const paths = [
        `/runs/${encoded}`,
        `/runs?thread=${encoded}&after=${encoded}`,
        `/runs?state=${encoded}&page=${encoded}`,
        `/inbox?status=${encoded}&thread=${encoded}&mine=${encoded}&done=${encoded}`,
        `/inbox/approvals/${encoded}`,
        `/api/approvals/${encoded}`,
        `/api/approvals?status=${encoded}&thread=${encoded}`,
        `/inbox/login?token=${encoded}`,
      ];
      for (const path of paths.filter((one) => one.length < 12_000)) {
        const answer = await ann.get(path);
        const text = await answer.text();
        expect([path.slice(0, 80), answer.status < 500]).toEqual([path.slice(0, 80), true]);
        if (/html/.test(answer.headers.get("content-type") ?? "")) expect(text).not.toMatch(/<script>alert|<img src=x/);
        else if (answer.status !== 303) expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
        expect(answer.headers.get("set-cookie") ?? "").not.toContain("a=b");
      }
    }
    for (const path of ["/runs/%", "/runs/%E0%A4%A", "/runs/%ff%fe", "/inbox?thread=%E0%A4", "/api/approvals/%"])
      expect([path, (await ann.get(path)).status < 500]).toEqual([path, true]);
    expect(await snapshot()).toEqual(before);
  });

  it("in a form are answered with less than 500, and change nothing", async () => {
    const before = await snapshot();
    const csrf = await ann.csrf();
    for (const value of HOSTILE) {
      const forms: [string, Record<string, string>][] = [
        [`/inbox/approvals/${id}/decide`, { status: value, comment: value, args: value }],
        // What is JSON is an edit, and this place takes any.
        [`/inbox/approvals/${id}/decide`, { status: "edited", args: `{${value}`, comment: value }],
        [`/inbox/approvals/${id}/review`, { args: value, comment: value }],
        ["/inbox/settle", { key: value, thread: value, outcome: "happened", receipt: value, reason: value }],
        ["/inbox/settle", { key: "0".repeat(64), thread: value, outcome: "write-off", reason: value }],
        ["/inbox/raise", { thread: value, scope: value, usd: value, reason: value }],
        ["/inbox/raise", { thread: "target", scope: value, usd: "1", iterations: value }],
        ["/inbox/redrive", { thread: value, reason: value }],
        ["/inbox/cancel", { thread: value === "target" ? "" : value, reason: value }],
      ];
      for (const [path, fields] of forms) {
        const answer = await ann.post(path, { csrf, ...fields });
        expect([path, JSON.stringify(value).slice(0, 60), answer.status < 500]).toEqual([
          path,
          JSON.stringify(value).slice(0, 60),
          true,
        ]);
        expect(await answer.text()).not.toMatch(/<script>alert|<img src=x/);
      }
    }
    expect(await snapshot()).toEqual(before);
  });

  it("in JSON are answered with less than 500, and change nothing", async () => {
    const before = await snapshot();
    const session = (await (await ann.get("/api/session")).json()) as { csrf: string };
    const headers = { "x-csrf-token": session.csrf };
    const bodies: unknown[] = [
      ...[null, [], 0, "x", {}, { status: null }, { status: ["approved"] }, { decision: [] }, { decision: "approved" }],
      ...[{ status: "edited" }, { status: "approved", comment: {} }],
      ...[{ byMs: "Infinity" }, { byMs: [5] }, { byMs: {} }, { byMs: -5 }, { byMs: "0x10", reason: 5 }],
      ...[{ graph: "__proto__" }, { graph: "x", input: {} }, { graph: 7 }, { graph: "constructor", trigger: 5 }],
    ];
    const deep = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;
    for (const body of bodies) {
      for (const path of [`/api/approvals/${id}/decide`, `/api/approvals/${id}/extend`, "/api/runs"]) {
        const answer = await ann.json(path, body, headers);
        expect([path, JSON.stringify(body), answer.status < 500]).toEqual([path, JSON.stringify(body), true]);
      }
    }
    expect(await snapshot()).toEqual(before);
    for (const args of [deep, '{"amount":1e999}']) {
      const answer = await ann.post(`/inbox/approvals/${id}/decide`, { csrf: session.csrf, status: "edited", args });
      expect([args.slice(0, 40), answer.status < 500]).toEqual([args.slice(0, 40), true]);
    }
  });

  it("as a method are not what the address says", async () => {
    const before = await snapshot();
    for (const method of ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"]) {
      for (const path of ["/inbox", `/inbox/approvals/${id}/decide`, "/inbox/cancel", "/api/approvals", "/api/runs"]) {
        const answer = await fetch(new URL(path, server.url), {
          method,
          headers: { cookie: ann.cookies, origin: server.url, "x-http-method-override": "POST" },
          redirect: "manual",
        });
        expect([method, path, answer.status < 500]).toEqual([method, path, true]);
        if (method === "HEAD") expect(await answer.text()).toBe("");
      }
    }
    expect(await snapshot()).toEqual(before);
  });
});
