// Where messages may go: the public internet over https, unless the endpoint is one of your own network.
import type { LookupAddress, LookupOptions } from "node:dns";
import { beforeAll, describe, expect, it } from "vitest";
import { isPublicAddress } from "../../src/core/publicAddress.js";
import { deliverOutbox, registerWebhook } from "../../src/index.js";
import { publicLookup, sendWebhook } from "../../src/notify/send.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { ask, SECRET } from "./harness.js";
import { answer, hookServer, keepWaiting } from "./hookServer.js";

let db: TestDatabase;
let ledger: OpenedLedger;
let server: Awaited<ReturnType<typeof hookServer>>;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  server = await hookServer();
});

const PRIVATE = [
  "127.0.0.1",
  "127.255.0.9",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "169.254.169.254",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "0.0.0.0",
  "255.255.255.255",
  "224.0.0.1",
  "::1",
  "::",
  "fe80::1",
  "fe80::1%eth0",
  "fc00::1",
  "fd00:ec2::254",
  "ff02::1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "0:0:0:0:0:ffff:10.0.0.1",
  "::127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b:1::1",
  "2002:7f00:1::",
  "2001::1",
  "2001:db8::1",
];

describe("an address", () => {
  it.each(PRIVATE)("%s is not public", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])(
    "%s is public",
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it("of an endpoint is refused when it is registered, in every way to write it", async () => {
    const refused = (url: string) =>
      registerWebhook(ledger, { name: "bad", url, secret: SECRET }).then(
        () => url,
        (error: { code: string }) => error.code,
      );
    const hosts = [
      "127.0.0.1",
      "0x7f.1",
      "2130706433",
      "017700000001",
      "127.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[fd00:ec2::254]",
    ];
    for (const host of hosts) expect(await refused(`https://${host}/`)).toBe("INVALID_OPTION");
    for (const url of [
      "http://example.com/",
      "https://user:pass@example.com/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "",
      "example.com",
    ])
      expect(await refused(url)).toBe("INVALID_OPTION");
    expect(await db.sql("select from longhaul.webhooks")).toEqual([]);
  });
});

describe("a message", () => {
  it("to a name that is an address of this machine is not sent, and nothing is connected to", async () => {
    const before = server.connections();
    await registerWebhook(ledger, { name: "rebound", url: `https://localhost:${server.port}/`, secret: SECRET });
    await ask(ledger, "rebound");
    expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 1, givenUp: 0 });
    const [row] = await db.sql<{ last_error: string }>("select last_error from longhaul.outbox");
    expect(row?.last_error).toMatch(/^localhost is (127\.0\.0\.1|::1), which is not public/);
    expect(server.connections()).toBe(before);
  });

  it("is not sent to an address that got into the table past the checks", async () => {
    const request = { allowPrivate: false, secrets: [SECRET], id: "msg_1", at: new Date(), body: "{}" };
    for (const url of [server.url, `https://127.0.0.1:${server.port}/`, `https://[::ffff:127.0.0.1]:${server.port}/`])
      expect(await sendWebhook({ ...request, url })).toMatchObject({ result: "failed", gone: false });
    expect(server.received).toEqual([]);
  });

  it("goes to a name of the own network where the endpoint allows it", async () => {
    const url = `http://localhost:${server.port}/`;
    server.answerWith(answer(200));
    const sent = await sendWebhook({
      url,
      allowPrivate: true,
      secrets: [SECRET],
      id: "msg_1",
      at: new Date(),
      body: "{}",
    });
    expect(sent).toEqual({ result: "sent", status: 200 });
  });

  it("that is not answered in time has failed", async () => {
    server.answerWith(keepWaiting);
    const request = { url: server.url, allowPrivate: true, secrets: [SECRET], id: "msg_1", at: new Date(), body: "{}" };
    expect(await sendWebhook(request, { timeoutMs: 50 })).toMatchObject({
      result: "failed",
      why: "It did not answer within 50 ms.",
    });
  });
});

describe("a name", () => {
  /** Another answer at each question, as who rebinds a name gives them. */
  function resolver(...answers: string[][]) {
    let asked = 0;
    const lookup = (_name: string, _options: LookupOptions, callback: (error: null, found: LookupAddress[]) => void) =>
      callback(
        null,
        (answers[asked++] ?? []).map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
    const guarded = publicLookup(lookup as never);
    const look = (all: boolean) =>
      new Promise((resolve) =>
        guarded("hook.example", { all }, (error, address, family) => resolve(error?.message ?? { address, family })),
      );
    return { look, asked: () => asked };
  }

  it("is connected to at the address that was checked, and looked up once", async () => {
    const { look, asked } = resolver(["8.8.8.8"], ["127.0.0.1"]);
    expect(await look(false)).toEqual({ address: "8.8.8.8", family: 4 });
    expect(asked()).toBe(1);
  });

  it("is refused as a whole when one of its addresses is private, or it has none", async () => {
    expect(await resolver(["8.8.8.8", "10.0.0.1"]).look(true)).toMatch(/10\.0\.0\.1, which is not public/);
    expect(await resolver(["2606:4700::1111", "::ffff:10.0.0.1"]).look(false)).toMatch(/not public/);
    expect(await resolver([]).look(true)).toMatch(/has no address/);
    expect(await resolver(["8.8.8.8", "2606:4700::1111"]).look(true)).toMatchObject({
      address: [{ family: 4 }, { family: 6 }],
    });
  });
});
