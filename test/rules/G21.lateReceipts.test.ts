// G21: fencing refuses claims and failures, never a success. A receipt is accepted from any attempt while the step is
// not final; on a final step it is kept as evidence.
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { deferred, historyOf, oneNode, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const lateReceipts = (threadId: string) =>
  db.sql(
    `select l.attempt, convert_from(l.output, 'utf8') as output, l.differs from longhaul.late_receipts l
     join longhaul.steps s using (key) where s.thread_id = $1`,
    [threadId],
  );

describe("G21: a success that comes late", () => {
  it("of an attempt that timed out ends the doubt, and the next run replays it", async () => {
    const gate = deferred<string>();
    let sent = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        {},
        async () => {
          sent++;
          return gate.promise;
        },
        { timeoutMs: 100 },
      ),
    );
    expect(await graph.invoke({ log: [] }, thread("timed out"))).toHaveProperty("__interrupt__");
    expect(await stepsOf(db, "timed out")).toMatchObject([{ state: "NEEDS_RECONCILIATION", doubt: true }]);
    gate.resolve("po_1");
    await expect.poll(async () => (await stepsOf(db, "timed out"))[0]?.state).toBe("SUCCEEDED");
    expect((await graph.invoke(null, thread("timed out"))).log).toEqual(["po_1"]);
    expect(sent).toBe(1);
    expect(await historyOf(db, "timed out")).toEqual(["RUNNING", "NEEDS_RECONCILIATION", "SUCCEEDED"]);
  });

  it.each([
    ["another receipt", "po_1", true],
    ["the same receipt", "po_2", false],
  ])("of an older attempt is evidence on a step that has succeeded since: %s", async (what, receipt, differs) => {
    const gate = deferred<string>();
    let sent = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write("pay", {}, async () => (++sent === 1 ? gate.promise : "po_2"), {
        timeoutMs: 100,
        idempotent: true,
        keyLifetimeMs: 3_600_000,
      }),
    );
    expect((await graph.invoke({ log: [] }, thread(what))).log).toEqual(["po_2"]);
    gate.resolve(receipt);
    await expect.poll(() => lateReceipts(what)).toEqual([{ attempt: 1, output: JSON.stringify(receipt), differs }]);
    expect(await stepsOf(db, what)).toMatchObject([{ state: "SUCCEEDED", attempt: 2 }]);
    expect((await graph.invoke(null, thread(what))).log).toEqual(["po_2"]);
  });

  it("is the only word of a fenced attempt that counts: its failure and its renewal change nothing", async () => {
    const gate = deferred<string>();
    let sent = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        {},
        async () => {
          if (++sent === 2) await gate.promise;
          throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
        },
        { idempotent: true, keyLifetimeMs: 3_600_000 },
      ),
    );
    const running = graph.invoke({ log: [] }, thread("fenced"));
    await expect.poll(() => sent).toBe(2);
    const { steps } = await db.openLedger()[LEDGER_PARTS].open();
    const key = (await stepsOf(db, "fenced"))[0]?.key ?? "";
    const first = { key, attempt: 1, claimId: randomUUID(), inDoubt: false, failures: 0 };
    const failure = { name: "Error", message: "no", status: 400 };
    expect(await steps.record(first, { to: "FAILED_PERMANENT", failure })).toBe("fenced");
    expect(await steps.record(first, { to: "READY", reason: "let go" })).toBe("fenced");
    expect(await steps.renew(first, 60_000)).toBe(false);
    expect(await stepsOf(db, "fenced")).toMatchObject([{ state: "RUNNING", attempt: 2, doubt: true }]);
    expect(await steps.recordLateSuccess(first, '"po_1"')).toBe("accepted");
    gate.resolve("");
    expect((await running).log).toEqual(["po_1"]);
    expect(sent).toBe(2);
  });
});
