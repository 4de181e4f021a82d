// One statement, one round trip: counted on the wire, where nothing can be hidden.
import { randomUUID } from "node:crypto";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LedgerSaver } from "../../src/checkpoint/index.js";
import type { Claim, RunTicket, StepIntent, StepRecord } from "../../src/core/ledger.js";
import { createRunLedger, createStepLedger } from "../../src/postgres/ledger.js";
import type { PooledDatabase } from "../../src/postgres/pool.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { startTcpProxy, type TcpProxy } from "../support/tcpProxy.js";

const LEASE_MS = 60_000;
const FAILURE = { name: "Error", message: "no" };

let db: TestDatabase;
let proxy: TcpProxy;
let database: PooledDatabase;
let ticket: RunTicket;
beforeAll(async () => {
  db = await testDatabase();
  proxy = await startTcpProxy(db.url);
  database = await databaseOf(db.openLedger({ url: proxy.url }));
  ticket = await acquire("thread");
});
afterAll(() => proxy.close());

async function acquire(threadId: string): Promise<RunTicket> {
  const answer = await createRunLedger(database).acquire(threadId, randomUUID(), LEASE_MS, "run");
  if (!("ticket" in answer)) throw new Error("The thread is busy.");
  return answer.ticket;
}

/** What `work` answers, and how often it waited for the database. */
async function counted<T>(work: () => Promise<T>): Promise<[roundTrips: number, answer: T]> {
  proxy.count();
  const answer = await work();
  return [proxy.statements, answer];
}

function intentOf(name: string): StepIntent {
  return {
    key: Buffer.from(name.padEnd(32)).toString("hex"),
    kind: "node",
    effect: "write",
    name,
    version: undefined,
    callSite: "0",
    position: { threadId: "thread", node: "n", taskId: "t", checkpointNs: "", checkpointId: "c", superstep: 1 },
    inputHash: "00",
    input: "{}",
    timeoutMs: 1,
    settleMs: 1,
    keyLifetimeMs: undefined,
    leaseMs: LEASE_MS,
  };
}

async function begun(name: string): Promise<Claim> {
  const answer = await createStepLedger(database, "").begin(ticket, intentOf(name), randomUUID());
  if (!("claim" in answer)) throw new Error("The step was not claimed.");
  return answer.claim;
}

async function found(name: string): Promise<StepRecord> {
  const record = await createStepLedger(database, "").find(intentOf(name).key);
  if (record === undefined) throw new Error("The step is not recorded.");
  return record;
}

it("A run looks who has its thread, then takes, renews and gives it up in one round trip each", async () => {
  const runs = createRunLedger(database);
  const [taken, own] = await counted(() => acquire("another"));
  const [renewed] = await counted(() => runs.renew(own, LEASE_MS));
  const [released] = await counted(() => runs.release(own, "done"));
  const [woken] = await counted(() => runs.wake("another", new Date(), "test"));
  expect({ taken, renewed, released, woken }).toEqual({ taken: 2, renewed: 1, released: 1, woken: 1 });
});

it("A step's intent is one round trip, and so is every end that an attempt can have", async () => {
  const steps = createStepLedger(database, "");
  const outcomes = [
    { to: "SUCCEEDED", output: "1", usage: undefined },
    { to: "READY", reason: "test" },
    { to: "RETRY_SCHEDULED", dueInMs: 1000, failure: FAILURE },
    { to: "NEEDS_RECONCILIATION", failure: FAILURE },
    { to: "FAILED_PERMANENT", failure: FAILURE },
  ] as const;
  for (const outcome of outcomes) {
    const [intent, claim] = await counted(() => begun(outcome.to));
    const [renewed] = await counted(() => steps.renew(claim, LEASE_MS));
    const [ended, answer] = await counted(() => steps.record(claim, outcome));
    expect({ to: outcome.to, intent, renewed, ended, answer }).toEqual({
      to: outcome.to,
      intent: 1,
      renewed: 1,
      ended: 1,
      answer: "recorded",
    });
  }
});

it("A read and its result, a claim again, a verdict, a late receipt and a note are one round trip each", async () => {
  const steps = createStepLedger(database, "");
  const [read] = await counted(() => steps.recordRead(ticket, { ...intentOf("read"), effect: "read" }, "1", 1));
  const claim = await begun("again");
  await steps.record(claim, { to: "NEEDS_RECONCILIATION", failure: FAILURE });
  const doubtful = await found("again");
  const ready = { to: "READY", actor: "test", reason: "test", wake: true } as const;
  const [verdict, settled] = await counted(() => steps.settle(doubtful, ready));
  const free = await found("again");
  const [again, answer] = await counted(() => steps.claimAgain(ticket, free, intentOf("again"), randomUUID(), "test"));
  const [late, accepted] = await counted(() => steps.recordLateSuccess(claim, "1"));
  const done = await found("again");
  const [note] = await counted(() => steps.noteDrift(done, "01"));
  expect({ settled, claimed: "claim" in answer, accepted }).toEqual({
    settled: true,
    claimed: true,
    accepted: "accepted",
  });
  expect({ read, verdict, again, late, note }).toEqual({ read: 1, verdict: 1, again: 1, late: 1, note: 1 });
});

it("A checkpoint and the writes of a task are one round trip each, whatever number of channels they have", async () => {
  const own = await acquire("checkpoints");
  const saver = new LedgerSaver(async () => database, "longhaul").forRun({
    ticket: own,
    lost: undefined,
    lose: () => {},
  });
  const config = { configurable: { thread_id: "checkpoints", checkpoint_ns: "" } };
  const metadata = { source: "loop", step: 1, parents: {} } as const;
  // A run loads the thread before it stores anything: that is when it learns the head.
  const [load] = await counted(() => saver.getTuple(config));
  const values = { a: 1, b: [1, 2], c: "c".repeat(100_000) };
  const versions = { a: 1, b: 1, c: 1 };
  const first = { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions };
  const [put, base] = await counted(() => saver.put(config, first, metadata, versions));
  const writes = Object.entries(values);
  const [written] = await counted(() => saver.putWrites(base, writes, "task-1", "path"));
  const [failed] = await counted(() => saver.putWrites(base, [["__error__", { message: "no" }]], "task-2", "path"));
  const second = { ...first, id: uuid6(1) };
  const [next] = await counted(() => saver.put(base, second, metadata, versions));
  expect({ load, put, written, failed, next }).toEqual({ load: 1, put: 1, written: 1, failed: 1, next: 1 });
});
