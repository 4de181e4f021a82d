// A deliverer that is killed: another takes its messages over, and a repeat is known by its id.
import { once } from "node:events";
import { beforeAll, expect, it } from "vitest";
import { deliverOutbox, registerWebhook } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type RunningScript, startScript } from "../support/script.js";
import { ask, SECRET } from "./harness.js";
import { answer, hookServer, keepWaiting } from "./hookServer.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

async function asked(threadId: string) {
  await db.sql("delete from longhaul.webhooks");
  const server = await hookServer();
  const ledger = db.openLedger();
  await registerWebhook(ledger, { name: "here", url: server.url, secret: SECRET, allowPrivate: true });
  await ask(ledger, threadId);
  return { server, ledger };
}

async function kill({ child, ended }: RunningScript): Promise<void> {
  child.kill("SIGKILL");
  expect((await ended).signal).toBe("SIGKILL");
}

it("a deliverer that is killed while it waits for the answer is taken over when its claim ends, not before", async () => {
  const { server, ledger } = await asked("killed waiting");
  server.answerWith(keepWaiting);
  const arrived = server.next();
  const running = startScript("test/notify/deliver.child.ts", [db.url]);
  await arrived;
  await kill(running);
  server.answerWith(answer(200));
  expect(await deliverOutbox(ledger)).toEqual({ sent: 0, failed: 0, givenUp: 0 });
  await db.advance(31_000);
  expect(await deliverOutbox(ledger)).toEqual({ sent: 1, failed: 0, givenUp: 0 });
  expect(server.received).toHaveLength(2);
  expect(new Set(server.received.map(({ id }) => id)).size).toBe(1);
  expect(await db.sql("select attempts from longhaul.outbox")).toEqual([{ attempts: 2 }]);
});

it("a deliverer that is killed before it notes the answer leaves a message that comes twice, the same both times", async () => {
  const { server, ledger } = await asked("killed answered");
  const running = startScript("test/notify/deliver.child.ts", [db.url, "lh_outbox_sent"]);
  if (running.child.stdout === null) throw new Error("The child has no output.");
  await once(running.child.stdout, "data");
  await kill(running);
  await db.advance(31_000);
  expect((await deliverOutbox(ledger)).sent).toBe(1);
  const [first, second] = server.received;
  expect(server.received).toHaveLength(2);
  expect([second?.id, second?.body]).toEqual([first?.id, first?.body]);
});
