// G1: "it did not happen" counts only after the settle time; "it happened" counts at once.
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import type { StepIntent } from "../../src/core/ledger.js";
import { type LookupAnswer, settle } from "../../src/index.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { oneNode, reset, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const keyOf = async (threadId: string) => (await stepsOf(db, threadId))[0]?.key ?? "";

describe("G1: did-not-happen waits for the settle time", () => {
  it("a request that is still on the wire when the lookup says no is not sent a second time", async () => {
    const landed: string[] = [];
    let sent = 0;
    let asked = 0;
    const lookup = async (): Promise<LookupAnswer<string>> => {
      asked++;
      const answer: LookupAnswer<string> =
        landed[0] === undefined ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: landed[0] };
      // The provider's read side lags: it said no, and then the request arrives.
      if (landed.length === 0) landed.push("po_1");
      return answer;
    };
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        { amount: 1 },
        async (): Promise<string> => {
          if (++sent > 1) landed.push(`po_${sent}`);
          throw reset();
        },
        { lookup, settleMs: 300 },
      ),
    );
    expect((await graph.invoke({ log: [] }, thread("wire"))).log).toEqual(["po_1"]);
    expect([sent, asked, landed]).toEqual([1, 2, ["po_1"]]);
  });

  it("the settle time counts from the end of the last lease under which an attempt could have sent", async () => {
    const { steps, runs } = await db.openLedger()[LEDGER_PARTS].open();
    const acquired = await runs.acquire("dead", randomUUID(), 60_000, "run");
    if (!("ticket" in acquired)) throw new Error("The thread is busy.");
    const answer = await steps.begin(acquired.ticket, intent("dead"), randomUUID());
    if (!("claim" in answer)) throw new Error("The step is claimed.");
    const settledFrom = async () => {
      const { settledFrom: from, leaseUntil } = (await steps.find(answer.claim.key)) ?? {};
      return { fromMs: from?.getTime() ?? 0, leaseMs: leaseUntil?.getTime() ?? 0 };
    };
    const claimed = await settledFrom();
    expect(claimed.fromMs - claimed.leaseMs).toBe(SETTLE_MS);
    await db.advance(LEASE_MS / 2);
    await steps.renew(answer.claim, LEASE_MS);
    const renewed = await settledFrom();
    expect(renewed.fromMs).toBeGreaterThan(claimed.fromMs);
    await db.advance(LEASE_MS + 1);
    const dead = await steps.find(answer.claim.key);
    if (dead === undefined) throw new Error("The step is gone.");
    await steps.settle(dead, { to: "NEEDS_RECONCILIATION", actor: "takeover", reason: "gone" });
    expect((await settledFrom()).fromMs).toBe(renewed.fromMs);
  });

  it("a person's word that it did not happen is held to the same time, and counts after it", async () => {
    const ledger = db.openLedger();
    let sent = 0;
    const graph = oneNode(ledger, (step) =>
      step.write(
        "pay",
        {},
        async () => {
          if (++sent === 1) throw reset();
          return "paid";
        },
        { settleMs: 60_000 },
      ),
    );
    expect(await graph.invoke({ log: [] }, thread("person"))).toHaveProperty("__interrupt__");
    const word = { idempotencyKey: await keyOf("person"), by: "ann", outcome: "did-not-happen" } as const;
    const early = await settle(ledger, word);
    expect(early).toEqual({ result: "not-yet", notBefore: expect.any(Date) });
    expect(await graph.invoke(null, thread("person"))).toHaveProperty("__interrupt__");
    expect(sent).toBe(1);
    await db.advance(60_001);
    expect(await settle(ledger, word)).toMatchObject({ result: "settled" });
    expect((await graph.invoke(null, thread("person"))).log).toEqual(["paid"]);
    expect(sent).toBe(2);
  });

  it("happened counts at once", async () => {
    let sent = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        {},
        async (): Promise<string> => {
          sent++;
          throw reset();
        },
        { lookup: async () => ({ outcome: "happened", receipt: "po_1" }), settleMs: 3_600_000 },
      ),
    );
    expect((await graph.invoke({ log: [] }, thread("at once"))).log).toEqual(["po_1"]);
    expect(sent).toBe(1);
  });
});

const LEASE_MS = 30_000;
const SETTLE_MS = 5_000;

function intent(threadId: string): StepIntent {
  return {
    key: "a".repeat(64),
    kind: "node",
    effect: "write",
    name: "pay",
    version: undefined,
    callSite: "0",
    position: { threadId, node: "n", taskId: "t", checkpointNs: "n:t", checkpointId: "c", superstep: 1 },
    inputHash: "c".repeat(64),
    input: "{}",
    timeoutMs: 1000,
    settleMs: SETTLE_MS,
    keyLifetimeMs: undefined,
    leaseMs: LEASE_MS,
  };
}
