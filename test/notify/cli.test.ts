// `longhaul webhooks`, and what the doctor says of messages that do not arrive.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deliverOutbox, registerWebhook } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { ask, isSignedBy, OTHER_SECRET, SECRET } from "./harness.js";
import { answer, hookServer } from "./hookServer.js";

let db: TestDatabase;
let folder: string;
let secretFile: string;
beforeAll(async () => {
  db = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "longhaul-webhooks-"));
  secretFile = join(folder, "secret");
  await writeFile(secretFile, `${SECRET}\n${OTHER_SECRET}\n`);
});
afterAll(() => rm(folder, { recursive: true }));

it("registers, tests, lists, delivers, retries and removes an endpoint, and prints no secret", async () => {
  const server = await hookServer();
  const printed: unknown[] = [];
  const run = async (...argv: string[]) => {
    const { code, lines, stderr } = await longhaul(db.url, "webhooks", ...argv);
    printed.push(lines, stderr);
    return { code, lines };
  };
  const url = `${server.url}/T0/secret-path?token=hidden`;
  const add = [
    "add",
    "pager",
    "--to",
    url,
    "--secret-file",
    secretFile,
    "--allow-private",
    "--kinds",
    "requested",
    "warned",
  ];
  expect(await run(...add, "--decides", "--as", "ann", "--role", "legal")).toMatchObject({
    code: 0,
    lines: [{ name: "pager", kinds: ["requested", "warned"], decides: true, vouchesFor: ["ann"], roles: ["legal"] }],
  });
  expect(await run("test", "pager")).toMatchObject({ code: 0, lines: [{ result: "sent", status: 204 }] });
  const [test] = server.received;
  expect(test?.path).toBe("/hook/T0/secret-path?token=hidden");
  expect(test && (await isSignedBy(OTHER_SECRET, test))).toBe(true);
  await ask(db.openLedger(), "by hand");
  server.answerWith(answer(410));
  expect(await run("deliver")).toMatchObject({ code: 1, lines: [{ sent: 0, failed: 0, givenUp: 1 }] });
  expect((await run("list")).lines).toMatchObject([
    { name: "pager", url: `http://127.0.0.1:${server.port}/…`, waiting: 0, givenUp: 1, lastError: "It answered 410." },
  ]);
  const doctor = await longhaul(db.url, "doctor");
  expect(doctor.lines.find(({ check }) => check === "webhooks")).toMatchObject({
    ok: false,
    detail: "pager: 1 given up; see longhaul webhooks list",
  });
  server.answerWith(answer(200));
  expect(await run("retry", "pager")).toMatchObject({ code: 0, lines: [{ retried: 1 }] });
  expect((await run("retry", "pager")).code).toBe(3);
  expect(await run("deliver")).toMatchObject({ code: 0, lines: [{ sent: 1 }] });
  expect(await run("remove", "pager")).toMatchObject({ code: 0 });
  expect(await run("remove", "pager")).toMatchObject({ code: 1, lines: [{ error: "NOT_FOUND" }] });
  for (const secret of [SECRET, OTHER_SECRET, "secret-path", "hidden"])
    expect(JSON.stringify(printed)).not.toContain(secret.replace("whsec_", ""));
});

it("refuses what cannot be, and stores nothing", async () => {
  const add = (...argv: string[]) => longhaul(db.url, "webhooks", "add", ...argv);
  const bad = [
    ["hook", "--to", "https://example.com/", "--secret-file", "/nowhere"],
    ["hook", "--to", "http://example.com/", "--secret-file", secretFile],
    ["hook", "--to", "https://10.0.0.1/", "--secret-file", secretFile],
    ["a/b", "--to", "https://example.com/", "--secret-file", secretFile],
    ["hook", "--secret-file", secretFile],
    ["hook", "--to", "https://example.com/", "--secret-file", secretFile, "--link", "https://example.com/"],
  ];
  for (const argv of bad) expect((await add(...argv)).code, argv.join(" ")).toBe(2);
  expect(await db.sql("select from longhaul.webhooks")).toEqual([]);
});

it("the doctor names endpoints whose messages nobody delivers", async () => {
  const ledger = db.openLedger();
  const server = await hookServer();
  await registerWebhook(ledger, { name: "quiet", url: server.url, secret: SECRET, allowPrivate: true });
  const found = async () => (await longhaul(db.url, "doctor")).lines.find(({ check }) => check === "webhooks");
  await ask(ledger, "unheard");
  expect(await found()).toMatchObject({ ok: true });
  await db.advance(61_000);
  expect(await found()).toMatchObject({ ok: false, detail: expect.stringContaining("quiet: 1 due for over a minute") });
  await deliverOutbox(ledger);
  expect(await found()).toMatchObject({ ok: true });
});

it("what was sent is forgotten after a week, what was given up after a month", async () => {
  const ledger = db.openLedger();
  const server = await hookServer();
  await registerWebhook(ledger, { name: "old", url: server.url, secret: SECRET, allowPrivate: true });
  await ask(ledger, "old one");
  server.answerWith(answer(410));
  await deliverOutbox(ledger);
  server.answerWith(answer(200));
  const DAY = 24 * 3_600_000;
  const left = async () => {
    await ask(ledger, `at ${Math.random()}`);
    await deliverOutbox(ledger);
    const [row] = await db.sql<{ sent: number; given_up: number }>(
      "select count(sent_at)::int as sent, count(given_up_at)::int as given_up from longhaul.outbox where endpoint = 'old'",
    );
    return row;
  };
  expect(await left()).toEqual({ sent: 1, given_up: 1 });
  await db.advance(6 * DAY);
  expect(await left()).toEqual({ sent: 2, given_up: 1 });
  await db.advance(2 * DAY);
  expect(await left()).toEqual({ sent: 2, given_up: 1 });
  await db.advance(23 * DAY);
  expect(await left()).toEqual({ sent: 1, given_up: 0 });
});
