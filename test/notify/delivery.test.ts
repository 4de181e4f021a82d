// Notifications on their way: written with what they tell of, signed, tried again, and sent where they may go.
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  decide,
  deliverOutbox,
  registerWebhook,
  removeWebhook,
  retryWebhook,
  testWebhook,
  verifyWebhook,
  webhooksOf,
} from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { sweepApprovals } from "../../src/postgres/approvalTimes.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { ask, isSignedBy, OTHER_SECRET, SECRET } from "./harness.js";
import { answer, drop, hookServer, keepWaiting } from "./hookServer.js";

const HOUR = 3_600_000;
let db: TestDatabase;
let ledger: OpenedLedger;
let server: Awaited<ReturnType<typeof hookServer>>;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  server = await hookServer();
});
beforeEach(async () => {
  await db.sql("delete from longhaul.webhooks");
  server.received.length = 0;
  server.answerWith(answer(204));
});

const here = (more: Partial<Parameters<typeof registerWebhook>[1]> = {}) =>
  registerWebhook(ledger, { name: "here", url: server.url, secret: SECRET, allowPrivate: true, ...more });
const outbox = () =>
  db.sql<{
    kind: string;
    attempts: number;
    last_error: string | null;
    sent: boolean;
    given_up: boolean;
    wait_s: number;
  }>(
    `select kind, attempts, last_error, sent_at is not null as sent, given_up_at is not null as given_up,
       extract(epoch from due_at - longhaul.ledger_now())::float8 as wait_s from longhaul.outbox order by created_at, kind`,
  );

describe("a message", () => {
  it("is written for what happens to a request, with ids, people and times, and not what is asked about", async () => {
    await here({ link: "https://inbox.example/approvals/{id}" });
    const { id } = await ask(ledger, "told", { approvers: ["ann"], timeoutMs: HOUR });
    await decide(ledger, { approvalId: id, by: "ann", decision: { status: "rejected", comment: "not secret-7" } });
    expect(await deliverOutbox(ledger)).toEqual({ sent: 2, failed: 0, givenUp: 0 });
    const [requested, rejected] = server.received.sort((a, b) => (a.message.type > b.message.type ? -1 : 1));
    expect(requested?.message).toEqual({
      type: "approval.requested",
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      data: {
        approvalId: id,
        threadId: "told",
        node: "sign",
        action: "sign",
        status: "pending",
        approvers: ["ann"],
        onTimeout: "reject",
        by: "run",
        requestedAt: expect.stringMatching(/Z$/),
        deadlineAt: expect.stringMatching(/Z$/),
        link: `https://inbox.example/approvals/${id}`,
      },
    });
    const { requestedAt, deadlineAt } = requested?.message.data ?? {};
    expect(Date.parse(String(deadlineAt)) - Date.parse(String(requestedAt))).toBe(HOUR);
    expect(rejected?.message).toMatchObject({ type: "approval.rejected", data: { by: "ann", status: "rejected" } });
    expect(JSON.stringify(server.received)).not.toContain("secret-7");
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 0, givenUp: 0 });
  });

  it("is signed as Standard Webhooks has it, with each secret, at the ledger's time", async () => {
    await here({ secret: [SECRET, OTHER_SECRET] });
    await ask(ledger, "signed");
    await db.advance(6 * HOUR);
    await deliverOutbox(ledger);
    const [got] = server.received;
    if (got === undefined) throw new Error("Nothing came.");
    expect(got.headers).toMatchObject({
      "content-type": "application/json",
      "webhook-id": expect.stringMatching(/^msg_\w{32}$/),
    });
    expect(await isSignedBy(SECRET, got)).toBe(true);
    expect(await isSignedBy(OTHER_SECRET, got)).toBe(true);
    expect(await isSignedBy(SECRET, { ...got, body: `${got.body} ` })).toBe(false);
    const [clock] = await db.sql<{ now: Date }>("select longhaul.ledger_now() as now");
    const { headers, body } = got;
    expect(verifyWebhook({ headers, body, secret: SECRET, now: clock?.now ?? new Date() })).toMatchObject({
      id: got.id,
    });
  });

  it("carries the arguments where the endpoint asks for them, through the ledger's codec", async () => {
    const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0x55);
    const sealed = db.openLedger({ bodyCodec: { encode: flip, decode: flip } });
    await registerWebhook(sealed, {
      name: "here",
      url: server.url,
      secret: SECRET,
      allowPrivate: true,
      includeArgs: true,
    });
    const { id } = await ask(sealed, "sealed");
    await decide(sealed, {
      approvalId: id,
      by: "ann",
      decision: { status: "edited", args: { contract: "8" }, comment: "so" },
    });
    const [stored] = await db.sql<{ secrets: Buffer }>("select secrets from longhaul.webhooks");
    expect(stored?.secrets.includes(SECRET.slice(6, 20))).toBe(false);
    // A deliverer without the codec can neither sign nor read; one with it can.
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 2, givenUp: 0 });
    expect(server.received).toEqual([]);
    await db.advance(10_000);
    expect((await deliverOutbox(sealed)).sent).toBe(2);
    expect(
      server.received.map(({ message }) => message).find(({ type }) => type === "approval.edited")?.data,
    ).toMatchObject({
      args: { contract: "secret-7" },
      editedArgs: { contract: "8" },
      description: "about secret-7",
      comment: "so",
    });
  });

  it("is written in the transaction of the event: neither is there without the other", async () => {
    await here();
    const { id } = await ask(ledger, "together");
    const database = await databaseOf(ledger);
    const event = `insert into longhaul.approval_events (approval_id, kind, by_whom, at) values ('${id}', 'warned', 'system', longhaul.ledger_now())`;
    const rolledBack = database.transaction(async (client) => {
      await client.query(event);
      expect((await client.query("select from longhaul.outbox where kind = 'warned'")).rowCount).toBe(1);
      throw new Error("back");
    });
    await expect(rolledBack).rejects.toThrow("back");
    expect((await outbox()).map(({ kind }) => kind)).toEqual(["requested"]);
    await db.sql(event);
    expect((await outbox()).map(({ kind }) => kind).sort()).toEqual(["requested", "warned"]);
  });

  it("is written by sweeps too, for each endpoint what it wants, and not at all without endpoints", async () => {
    await ask(ledger, "nobody listens");
    expect(await outbox()).toEqual([]);
    await here({ kinds: ["warned", "escalated"] });
    await registerWebhook(ledger, {
      name: "late",
      url: server.url,
      secret: SECRET,
      allowPrivate: true,
      kinds: ["expired"],
    });
    await registerWebhook(ledger, { name: "decider", secret: SECRET, decides: true });
    const policy = {
      approvers: ["ann"],
      warnAfterMs: HOUR,
      escalateTo: ["bob"],
      escalateAfterMs: HOUR,
      timeoutMs: 2 * HOUR,
    };
    await ask(ledger, "swept", policy);
    await db.advance(HOUR);
    await sweepApprovals(await databaseOf(ledger));
    await db.advance(HOUR);
    await sweepApprovals(await databaseOf(ledger));
    const rows = await db.sql(
      "select endpoint, kind, payload->'approvers' as approvers from longhaul.outbox order by kind",
    );
    expect(rows).toEqual([
      { endpoint: "here", kind: "escalated", approvers: ["ann", "bob"] },
      { endpoint: "late", kind: "expired", approvers: ["ann", "bob"] },
      { endpoint: "here", kind: "warned", approvers: ["ann", "bob"] },
    ]);
  });

  it("fails no request when its endpoint is removed at the same moment", async () => {
    await here();
    let asking: ReturnType<typeof ask> | undefined;
    await (await databaseOf(ledger)).transaction(async (client) => {
      await client.query("delete from longhaul.webhooks");
      asking = ask(ledger, "removed");
      const waiting = async () => (await db.sql("select from pg_locks where not granted")).length;
      await expect.poll(waiting, { timeout: 10_000 }).toBeGreaterThan(0);
    });
    const { id } = (await asking) ?? {};
    expect(id).toBeDefined();
    expect(await outbox()).toEqual([]);
  });
});

describe("a delivery", () => {
  it("that is answered 500, or dropped, is tried again under the same id, 5 s and 20 s later", async () => {
    await here();
    await ask(ledger, "again");
    server.answerWith(answer(500));
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 1, givenUp: 0 });
    const [first] = await outbox();
    expect(first).toMatchObject({ attempts: 1, last_error: "It answered 500." });
    expect(first?.wait_s).toBeGreaterThan(4);
    expect(first?.wait_s).toBeLessThanOrEqual(5.5);
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 0, givenUp: 0 });
    await db.advance(5_500);
    server.answerWith(drop);
    expect((await deliverOutbox(ledger)).failed).toBe(1);
    expect((await outbox())[0]?.wait_s).toBeGreaterThan(18);
    await db.advance(22_000);
    server.answerWith(answer(200));
    expect((await deliverOutbox(ledger)).sent).toBe(1);
    expect(server.received.map(({ id }) => id)).toEqual(Array(3).fill(server.received[0]?.id));
    expect(new Set(server.received.map(({ body }) => body)).size).toBe(1);
    const times = server.received.map(({ headers }) => Number(headers["webhook-timestamp"]));
    expect((times[2] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(27);
    expect((await outbox())[0]).toMatchObject({ sent: true, last_error: null });
  });

  it("is given up after three days, shown as such, and sent again when somebody says so", async () => {
    await here();
    await ask(ledger, "given up");
    server.answerWith(answer(503));
    let triedHours = 0;
    for (let tries = 0; tries < 30; tries++) {
      const { failed, givenUp } = await deliverOutbox(ledger);
      if (givenUp === 1) break;
      expect(failed).toBe(1);
      const waitMs = ((await outbox())[0]?.wait_s ?? 0) * 1000 + 1;
      expect(waitMs).toBeLessThanOrEqual(6 * HOUR + 1);
      triedHours += waitMs / HOUR;
      await db.advance(Math.ceil(waitMs));
    }
    expect(triedHours).toBeGreaterThan(60);
    expect(triedHours).toBeLessThan(80);
    expect(await webhooksOf(ledger)).toMatchObject([
      { name: "here", waiting: 0, givenUp: 1, lastError: "It answered 503." },
    ]);
    server.answerWith(answer(200));
    expect((await deliverOutbox(ledger)).sent).toBe(0);
    expect(await retryWebhook(ledger, "here")).toBe(1);
    expect((await deliverOutbox(ledger)).sent).toBe(1);
    expect(new Set(server.received.map(({ id }) => id)).size).toBe(1);
  });

  it("waits as long as it is asked to, and ends when it is told that nobody wants it", async () => {
    await here();
    await ask(ledger, "later");
    server.answerWith(answer(429, { "retry-after": "600" }));
    await deliverOutbox(ledger);
    expect((await outbox())[0]?.wait_s).toBeGreaterThan(590);
    await db.advance(660_000);
    server.answerWith(answer(410));
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 0, givenUp: 1 });
  });

  it("follows no redirect", async () => {
    const elsewhere = await hookServer();
    await here();
    await ask(ledger, "redirected");
    for (const status of [301, 302, 307, 308]) {
      server.answerWith(answer(status, { location: elsewhere.url }));
      expect((await deliverOutbox(ledger)).failed).toBe(1);
      await db.advance(HOUR);
    }
    expect(elsewhere.connections()).toBe(0);
    expect((await outbox())[0]?.last_error).toContain("Redirects are not followed");
  });

  it("that is broken off by the signal counts for nothing, and is due at once", async () => {
    await here();
    await ask(ledger, "broken off");
    server.answerWith(keepWaiting);
    const stopping = new AbortController();
    const arrived = server.next();
    const delivering = deliverOutbox(ledger, { signal: stopping.signal });
    await arrived;
    stopping.abort();
    expect(await delivering).toEqual({ sent: 0, failed: 0, givenUp: 0 });
    expect((await outbox())[0]).toMatchObject({ attempts: 0 });
    server.answerWith(answer(200));
    expect((await deliverOutbox(ledger)).sent).toBe(1);
  });

  it("is made once by many deliverers at once", async () => {
    await here();
    for (let n = 0; n < 12; n++) await ask(ledger, `many ${n}`);
    const all = await Promise.all(Array.from({ length: 4 }, () => deliverOutbox(db.openLedger())));
    expect(all.reduce((sum, { sent }) => sum + sent, 0)).toBe(12);
    expect(server.received).toHaveLength(12);
    expect(new Set(server.received.map(({ id }) => id)).size).toBe(12);
  });

  it("passes over what another deliverer is claiming at this moment", async () => {
    await here();
    await ask(ledger, "claimed");
    await (await databaseOf(ledger)).transaction(async (client) => {
      await client.query("select from longhaul.outbox for update");
      expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 0, givenUp: 0 });
    });
    expect((await deliverOutbox(ledger)).sent).toBe(1);
  });

  it("to one endpoint is not kept waiting by many to another that does not answer", async () => {
    const silent = await hookServer();
    silent.answerWith(keepWaiting);
    await registerWebhook(ledger, { name: "silent", url: silent.url, secret: SECRET, allowPrivate: true });
    const { id } = await ask(ledger, "silent");
    await db.sql(
      `insert into longhaul.approval_events (approval_id, kind, by_whom, at)
       select $1, 'warned', 'system', longhaul.ledger_now() from generate_series(1, 60)`,
      [id],
    );
    await here();
    await ask(ledger, "not silent");
    const stopping = new AbortController();
    const arrived = server.next();
    const delivering = deliverOutbox(ledger, { signal: stopping.signal });
    await arrived;
    stopping.abort();
    await delivering;
    expect(silent.received.length).toBeLessThanOrEqual(5);
    await removeWebhook(ledger, "silent");
    expect(await outbox()).toHaveLength(1);
  });

  it("of a test message goes past the outbox, and says what came of it", async () => {
    await here();
    expect(await testWebhook(ledger, "here")).toEqual({ result: "sent", status: 204 });
    expect(server.received[0]?.message).toMatchObject({ type: "test", data: { webhook: "here" } });
    server.answerWith(answer(404));
    expect(await testWebhook(ledger, "here")).toMatchObject({ result: "failed", why: "It answered 404." });
    expect(await outbox()).toEqual([]);
    await expect(testWebhook(ledger, "nobody")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});
