// Deciding by a signed request: believed when it is signed and new, once for each webhook-id, as far as it is trusted.
import { beforeAll, describe, expect, it } from "vitest";
import { webhookHeaders } from "../../src/core/webhook.js";
import { approvalsOf, decideByWebhook, registerWebhook, verifyWebhook, type WebhookOptions } from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { ask, OTHER_SECRET, SECRET, signedRequest } from "./harness.js";

let db: TestDatabase;
let ledger: OpenedLedger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const trust = (decides: WebhookOptions["decides"], more: Partial<WebhookOptions> = {}) =>
  registerWebhook(ledger, { name: "slack", secret: SECRET, ...(decides === undefined ? {} : { decides }), ...more });
const send = async (request: Request, on = ledger) => {
  const response = await decideByWebhook(on, request);
  const body = (await response.json()) as Record<string, unknown>;
  return { ...body, http: response.status, error: body["error"] };
};
const approved = { status: "approved" };
const statusOf = async (threadId: string) => (await approvalsOf(ledger, { threadId })).map(({ status }) => status);
const historyOf = async (id: string) =>
  (
    await db.sql<{ line: string }>(
      "select kind || ' ' || by_whom as line from longhaul.approval_events where approval_id = $1 order by id",
      [id],
    )
  ).map(({ line }) => line);

describe("a signed request", () => {
  it("decides as its endpoint, and the thread goes on", async () => {
    await trust(true);
    const { graph, id } = await ask(ledger, "plain", { approvers: ["webhook:slack"] });
    const got = await send(
      await signedRequest({ approvalId: id, decision: { ...approved, comment: "fine" }, by: "ann" }),
    );
    expect(got).toMatchObject({ status: "approved", result: "applied", approvalId: id, decidedBy: "webhook:slack" });
    expect((await graph.invoke(null, thread("plain"))).log).toEqual(["webhook:slack yes"]);
  });

  it("decides in the names it is trusted with, and with its roles", async () => {
    await trust({ as: ["ann"], roles: ["legal"] });
    const first = await ask(ledger, "ann's", { approvers: ["ann"] });
    expect(await send(await signedRequest({ approvalId: first.id, decision: approved, by: "ann" }))).toMatchObject({
      decidedBy: "ann",
    });
    const second = await ask(ledger, "bob's", { approvers: ["bob"] });
    const refused = await send(await signedRequest({ approvalId: second.id, decision: approved, by: "bob" }));
    expect(refused).toMatchObject({ http: 403, error: "DECISION_REFUSED" });
    expect(await historyOf(second.id)).toEqual(["requested run", "refused webhook:slack"]);
    const third = await ask(ledger, "legal's", { approvers: ["role:legal"] });
    expect(await send(await signedRequest({ approvalId: third.id, decision: approved }))).toMatchObject({
      decidedBy: "webhook:slack",
    });
    await trust({ as: "anyone" });
    expect(await send(await signedRequest({ approvalId: second.id, decision: approved, by: "bob" }))).toMatchObject({
      decidedBy: "bob",
    });
    const fourth = await ask(ledger, "nobody's");
    const lent = await send(await signedRequest({ approvalId: fourth.id, decision: approved, by: "webhook:other" }));
    expect(lent).toMatchObject({ decidedBy: "webhook:slack" });
    const fifth = await ask(ledger, "the agent's");
    for (const by of ["agent:me", "system:timeout"])
      expect((await send(await signedRequest({ approvalId: fifth.id, decision: approved, by }))).error).toBe(
        "DECISION_REFUSED",
      );
  });

  it("that comes again gets the same answer, at once and later, and from another process", async () => {
    await trust(true);
    const { id } = await ask(ledger, "again");
    const body = { approvalId: id, decision: approved };
    const answers = await Promise.all(
      Array.from({ length: 5 }, async () => send(await signedRequest(body, { id: "msg_again" }), db.openLedger())),
    );
    expect(answers[0]).toMatchObject({ result: "applied" });
    expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(await historyOf(id)).toEqual(["requested run", "approved webhook:slack"]);
    expect(await send(await signedRequest(body, { id: "msg_other" }))).toMatchObject({ result: "already-decided" });
    expect(await send(await signedRequest(body, { id: "msg_again" }))).toEqual(answers[0]);
    const other = await send(
      await signedRequest({ approvalId: id, decision: { status: "rejected" } }, { id: "msg_again" }),
    );
    expect(other).toMatchObject({ http: 409, error: "INPUT_CONFLICT" });
    expect(await statusOf("again")).toEqual(["approved"]);
  });

  it("whose answer was lost with the process is told that it decided, not that somebody else had", async () => {
    await trust(true);
    const { id } = await ask(ledger, "lost");
    const body = { approvalId: id, decision: approved };
    await send(await signedRequest(body, { id: "msg_lost" }));
    // As a kill between the decision and the note of the answer leaves it.
    await db.sql("update longhaul.webhook_receipts set answer = null where webhook_id = 'msg_lost'");
    expect(await send(await signedRequest(body, { id: "msg_lost" }))).toMatchObject({ result: "applied" });
  });

  it("may edit where the arguments fit, and what cannot be is refused for good", async () => {
    await trust(true);
    const { id } = await ask(ledger, "edited");
    const bodies: [unknown, number][] = [
      ["not json", 400],
      [[], 400],
      [null, 400],
      [{}, 400],
      [{ approvalId: id }, 400],
      [{ approvalId: id, decision: "approved" }, 400],
      [{ approvalId: id, decision: { status: "expired" } }, 400],
      [{ approvalId: id, decision: { status: "edited" } }, 400],
      [{ approvalId: id, decision: { status: "approved", args: {} } }, 400],
      [{ approvalId: id, decision: approved, roles: ["admin"] }, 400],
      [{ approvalId: id, decision: approved, by: "" }, 400],
      [{ approvalId: "unknown", decision: approved }, 404],
      [{ approvalId: "a\0b", decision: approved }, 400],
      [{ approvalId: id, decision: approved, "\0": "\ud800" }, 400],
      [{ approvalId: id, decision: { ...approved, ["x".repeat(500_000)]: "\ud800" } }, 400],
    ];
    for (const [body, status] of bodies)
      expect((await decideByWebhook(ledger, await signedRequest(body))).status, JSON.stringify(body)).toBe(status);
    expect(await historyOf(id)).toEqual(["requested run"]);
    await send(await signedRequest({ approvalId: id, decision: { status: "edited", args: { contract: "8" } } }));
    expect((await approvalsOf(ledger, { threadId: "edited" }))[0]).toMatchObject({
      status: "edited",
      editedArgs: { contract: "8" },
    });
  });
});

describe("a request that is not believed", () => {
  const refusedBy = async (id: string, make: () => Promise<Request>) => {
    expect((await decideByWebhook(ledger, await make())).status).toBe(401);
    expect(await historyOf(id)).toEqual(["requested run"]);
  };

  it("is unsigned, altered, signed by another key, for another endpoint, too old or too new", async () => {
    await trust(true);
    await registerWebhook(ledger, { name: "other", secret: OTHER_SECRET, decides: true });
    const { id } = await ask(ledger, "unbelieved");
    const body = { approvalId: id, decision: approved };
    const altered = async (change: (headers: Headers) => unknown) => {
      const request = await signedRequest(body);
      const headers = new Headers(request.headers);
      const changed = change(headers);
      const text = typeof changed === "string" ? changed : await request.text();
      return new Request(request.url, { method: "POST", headers, body: text });
    };
    await refusedBy(
      id,
      async () => new Request("https://inbox.example/webhooks/slack", { method: "POST", body: JSON.stringify(body) }),
    );
    await refusedBy(id, () => altered(() => JSON.stringify({ ...body, by: "eve" })));
    await refusedBy(id, () => altered((headers) => headers.set("webhook-id", "msg_mine")));
    await refusedBy(id, () =>
      altered((headers) => headers.set("webhook-timestamp", String(Number(headers.get("webhook-timestamp")) + 1))),
    );
    await refusedBy(id, () => altered((headers) => headers.set("webhook-signature", "v1,")));
    await refusedBy(id, () =>
      altered((headers) =>
        headers.set("webhook-signature", String(headers.get("webhook-signature")).replace("v1,", "v2,")),
      ),
    );
    await refusedBy(id, () => signedRequest(body, { secret: OTHER_SECRET }));
    await refusedBy(id, () => signedRequest(body, { name: "other" }));
    await refusedBy(id, () => signedRequest(body, { name: "nobody" }));
    await refusedBy(id, () => signedRequest(body, { name: "%E0" }));
    for (const ms of [-301_000, 301_000])
      await refusedBy(id, () => signedRequest(body, { at: new Date(Date.now() + ms) }));
  });

  it("is replayed when its time is over, by the ledger's clock", async () => {
    const fresh = await testDatabase();
    const own = fresh.openLedger();
    await registerWebhook(own, { name: "slack", secret: SECRET, decides: true });
    const { id } = await ask(own, "replayed");
    const request = await signedRequest({ approvalId: id, decision: approved });
    await fresh.advance(310_000);
    expect((await decideByWebhook(own, request.clone())).status).toBe(401);
    await fresh.advance(-310_000);
    expect((await decideByWebhook(own, request)).status).toBe(200);
  });

  it("comes from an endpoint that may not decide, is no POST, or is endless", async () => {
    await registerWebhook(ledger, { name: "slack", url: "https://example.com/", secret: SECRET });
    const { id } = await ask(ledger, "not trusted");
    expect((await send(await signedRequest({ approvalId: id, decision: approved }))).error).toBe("DECISION_REFUSED");
    expect((await decideByWebhook(ledger, new Request("https://inbox.example/webhooks/slack"))).status).toBe(405);
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(100_000)) });
    const request = new Request("https://inbox.example/webhooks/slack", {
      method: "POST",
      body: endless,
      duplex: "half",
    } as RequestInit);
    expect((await decideByWebhook(ledger, request)).status).toBe(413);
    expect(await statusOf("not trusted")).toEqual(["pending"]);
  });

  it("is answered with 503 when the ledger cannot be reached", async () => {
    const closed = db.openLedger();
    await closed.close();
    expect((await decideByWebhook(closed, await signedRequest({}))).status).toBe(503);
  });
});

describe("verifyWebhook", () => {
  // The example of the reference implementation's own tests.
  const known = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1614265330, body: '{"test": 2432232314}' };
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const now = new Date(1614265330_000);

  it("agrees with the reference implementation", () => {
    const headers = webhookHeaders(known, [secret]);
    expect(headers["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    expect(verifyWebhook({ headers, body: known.body, secret, now })).toEqual({ id: known.id, sentAt: now });
    expect(verifyWebhook({ headers, body: Buffer.from(known.body), secret: secret.slice(6), now }).id).toBe(known.id);
  });

  it("takes any of several signatures by any of several secrets, while one is being changed", () => {
    const both = webhookHeaders(known, [OTHER_SECRET, secret]);
    const fits = (headers: Record<string, string>, secrets: string | string[]) => {
      try {
        return verifyWebhook({ headers, body: known.body, secret: secrets, now }).id === known.id;
      } catch {
        return false;
      }
    };
    expect([fits(both, SECRET), fits(both, OTHER_SECRET), fits(both, secret)]).toEqual([false, true, true]);
    expect(fits(webhookHeaders(known, [secret]), [SECRET, secret])).toBe(true);
    const upper = Object.fromEntries(Object.entries(both).map(([name, value]) => [name.toUpperCase(), value]));
    expect(fits(upper, secret)).toBe(true);
  });

  it("refuses secrets that are none, and tells none", () => {
    const headers = webhookHeaders(known, [secret]);
    for (const bad of ["", "whsec_", "whsec_hunter2", "whsec_not base64 at all, but long enough", []]) {
      expect(() => verifyWebhook({ headers, body: known.body, secret: bad, now })).toThrow(/Expected `secret`/);
      expect(() => verifyWebhook({ headers, body: known.body, secret: bad, now })).not.toThrow(/hunter2/);
    }
  });
});
