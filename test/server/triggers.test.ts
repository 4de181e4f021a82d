// Runs that other systems start, and decisions that they send.
import { createHmac, randomBytes } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalsOf, registerWebhook } from "../../src/index.js";
import { inboxApp } from "../../src/server/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { payment } from "./paymentGraph.js";

let db: TestDatabase;
let send: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Response>;
beforeAll(async () => {
  db = await testDatabase();
  const ledger = db.openLedger();
  const app = inboxApp({
    ledger,
    sweep: false,
    graphs: { payment: payment(ledger).graph },
    authenticate: ({ headers }) => {
      const id = headers.get("authorization")?.replace("Bearer ", "");
      return id === undefined ? undefined : { id };
    },
  });
  send = async (path, body, headers = {}) =>
    app.request(`http://app.example${path}`, {
      method: "POST",
      headers: { host: "app.example", "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
});

const shop = { authorization: "Bearer shop" };

describe("POST /api/runs", () => {
  it("starts one run for an event, however often and at once it is sent", async () => {
    const order = { graph: "payment", input: { amount: 3 }, trigger: { eventId: "evt_1" } };
    const answers = await Promise.all([1, 2, 3, 4].map(() => send("/api/runs", order, shop)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
    const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { threadId: string }[];
    expect(new Set(bodies.map(({ threadId }) => threadId)).size).toBe(1);
    const rows = await db.sql("select source, event_id from longhaul.starts");
    expect(rows).toEqual([{ source: "shop", event_id: "evt_1" }]);
    expect(await db.sql("select reason from longhaul.wakes where thread_id = $1", [bodies[0]?.threadId])).toEqual([
      { reason: "started" },
    ]);
  });

  it("keeps the events of one sender apart from another's", async () => {
    const order = { graph: "payment", input: { amount: 3 }, trigger: { source: "a", eventId: "evt_2" } };
    expect((await send("/api/runs", order, shop)).status).toBe(201);
    expect((await send("/api/runs", order, { authorization: "Bearer other" })).status).toBe(201);
    // Nor does a slash in a name make one of two senders the other's source.
    const plain = { ...order, trigger: { eventId: "evt_2" } };
    expect((await send("/api/runs", plain, { authorization: "Bearer shop/a" })).status).toBe(201);
  });

  it("refuses by name another input on a thread, a graph that may not be started, and who is not known", async () => {
    const order = { graph: "payment", input: { amount: 3 }, threadId: "taken" };
    expect((await send("/api/runs", order, shop)).status).toBe(201);
    expect((await send("/api/runs", order, shop)).status).toBe(200);
    const other = await send("/api/runs", { ...order, input: { amount: 4 } }, shop);
    expect(other.status).toBe(409);
    expect(await other.json()).toMatchObject({ error: "START_CONFLICT" });
    for (const graph of ["nothing", "__proto__", "toString"])
      expect((await send("/api/runs", { ...order, graph }, shop)).status).toBe(404);
    for (const odd of [null, [], {}, { graph: "payment" }, { graph: "payment", input: null }])
      expect((await send("/api/runs", odd, shop)).status).toBe(400);
    expect((await send("/api/runs", order, { origin: "http://app.example" })).status).toBe(401);
    expect((await send("/api/runs", order)).status).toBe(403);
    expect((await send("/api/runs", order, { ...shop, origin: "https://evil.example" })).status).toBe(403);
  });
});

describe("POST /api/webhooks/:name", () => {
  it("decides for who has the secret, and for nobody else", async () => {
    const ledger = db.openLedger();
    const secret = randomBytes(32);
    await registerWebhook(ledger, { name: "pager", decides: true, secret: `whsec_${secret.toString("base64")}` });
    await payment(ledger).graph.invoke({ amount: 5 }, thread("by webhook"));
    const [approval] = await approvalsOf(ledger, { status: "pending", threadId: "by webhook" });
    const body = { approvalId: approval?.id, decision: { status: "approved" } };
    const at = String(Math.floor(Date.now() / 1000));
    const sign = (key: Buffer) =>
      createHmac("sha256", key)
        .update(`msg_1.${at}.${JSON.stringify(body)}`)
        .digest("base64");
    const post = (key: Buffer) =>
      send("/api/webhooks/pager", body, {
        "webhook-id": "msg_1",
        "webhook-timestamp": at,
        "webhook-signature": `v1,${sign(key)}`,
      });
    expect((await post(randomBytes(32))).status).toBe(401);
    expect((await post(secret)).status).toBe(200);
    expect(await approvalsOf(ledger, { threadId: "by webhook" })).toMatchObject([
      { status: "approved", decidedBy: "webhook:pager" },
    ]);
  });
});
