// Messages leave by themselves where a worker or a background sweeper runs, and hold up nothing else.
import { expect, it } from "vitest";
import { approvalsOf, registerWebhook } from "../../src/index.js";
import { startWorker, sweepHere } from "../../src/worker/index.js";
import { testDatabase } from "../support/database.js";
import { ask, SECRET } from "./harness.js";
import { hookServer, keepWaiting } from "./hookServer.js";

it("a background sweeper tells of deadlines as it keeps them", async () => {
  const db = await testDatabase();
  const [ledger, server] = [db.openLedger(), await hookServer()];
  await registerWebhook(ledger, { name: "here", url: server.url, secret: SECRET, allowPrivate: true });
  await ask(ledger, "expires", { timeoutMs: 3_600_000 });
  const sweeper = sweepHere(ledger, { pollMs: 100 });
  const types = () => server.received.map(({ message }) => message.type);
  await expect.poll(types, { timeout: 10_000 }).toEqual(["approval.requested"]);
  await db.advance(3_600_000);
  await expect.poll(types, { timeout: 10_000 }).toEqual(["approval.requested", "approval.expired"]);
  await sweeper.stop();
});

it("a worker keeps deadlines while an endpoint does not answer, and gives its message back when it stops", async () => {
  const db = await testDatabase();
  const [ledger, server] = [db.openLedger(), await hookServer()];
  server.answerWith(keepWaiting);
  await registerWebhook(ledger, {
    name: "silent",
    url: server.url,
    secret: SECRET,
    allowPrivate: true,
    kinds: ["requested"],
  });
  const { graph } = await ask(ledger, "kept", { timeoutMs: 3_600_000 });
  const arrived = server.next();
  const worker = startWorker({ ledger, graphs: graph, pollMs: 100 });
  await arrived;
  await db.advance(3_600_000);
  const status = async () => (await approvalsOf(ledger, { threadId: "kept" }))[0]?.status;
  await expect.poll(status, { timeout: 5_000 }).toBe("expired");
  await worker.stop();
  expect(await db.sql("select attempts, due_at <= longhaul.ledger_now() as due from longhaul.outbox")).toEqual([
    { attempts: 0, due: true },
  ]);
});
