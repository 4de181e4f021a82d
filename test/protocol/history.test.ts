// The history of a step tells everything that ever happened to it, whatever happens to it afterwards.
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { StepIntent } from "../../src/core/ledger.js";
import { createRunLedger, createStepLedger } from "../../src/postgres/ledger.js";
import { historyOf } from "../../src/postgres/stepRows.js";
import { databaseOf, testDatabase } from "../support/database.js";

const LEASE_MS = 60_000;
const INTENT: StepIntent = {
  key: "ab".repeat(32),
  kind: "node",
  effect: "write",
  name: "pay",
  version: undefined,
  callSite: "0",
  position: { threadId: "t", node: "n", taskId: "t", checkpointNs: "n:t", checkpointId: "c", superstep: 1 },
  inputHash: "00",
  input: "{}",
  timeoutMs: 1,
  settleMs: 1,
  keyLifetimeMs: undefined,
  leaseMs: LEASE_MS,
};

it("A note that another input came to a step that has succeeded leaves its receipt in the history", async () => {
  const db = await testDatabase();
  const database = await databaseOf(db.openLedger());
  const answer = await createRunLedger(database).acquire("t", randomUUID(), LEASE_MS, "run");
  if (!("ticket" in answer)) throw new Error("The thread is busy.");
  const steps = createStepLedger(database, "");
  const begun = await steps.begin(answer.ticket, INTENT, randomUUID());
  if (!("claim" in begun)) throw new Error("The step was not claimed.");
  await steps.record(begun.claim, { to: "SUCCEEDED", output: "1", usage: undefined });
  const before = await historyOf(database, INTENT.key);
  expect(before.map(({ from, to }) => [from, to])).toEqual([
    [undefined, "RUNNING"],
    ["RUNNING", "SUCCEEDED"],
  ]);
  const record = await steps.find(INTENT.key);
  if (record === undefined) throw new Error("The step is not recorded.");
  await steps.noteDrift(record, "01");
  const after = await historyOf(database, INTENT.key);
  expect(after.slice(0, 2)).toEqual(before);
  expect(after.slice(2)).toMatchObject([{ from: "SUCCEEDED", to: "SUCCEEDED" }]);
});
