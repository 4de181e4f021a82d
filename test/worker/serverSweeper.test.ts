// A LangGraph server that runs a durable graph sweeps by itself; a script, a test and a server that was told not to do not.
import { START, StateGraph } from "@langchain/langgraph";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { durableGraph, type Ledger } from "../../src/index.js";
import { type OpenedLedger, SWEEPER } from "../../src/openLedger.js";
import { sweepHere } from "../../src/worker/index.js";
import { State } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { runScript } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
beforeEach(async () => {
  await db.sql("delete from longhaul.sweeps");
});

const run = (ledger: Ledger, threadId: string, metadata: object = {}) =>
  durableGraph(new StateGraph(State).addNode("n", async () => ({})).addEdge(START, "n"), { ledger }).invoke(
    { log: [] },
    { configurable: { thread_id: threadId }, metadata: { ...metadata } },
  );
const SERVED = { langgraph_host: "self-hosted" };
const died = (threadId: string) =>
  db.sql(
    "insert into longhaul.threads (thread_id, epoch, lease_until, state, created_at, updated_at) values ($1, 1, now() - interval '1 s', 'running', now(), now())",
    [threadId],
  );
const woken = (threadId: string) => db.sql("select reason from longhaul.wakes where thread_id = $1", [threadId]);
const sweeps = () => db.sql("select swept_at from longhaul.sweeps");
const sweeping = (ledger: Ledger) => (ledger as OpenedLedger)[SWEEPER].sweeping;

describe("a process that runs a graph for a LangGraph server", () => {
  it("sweeps from its first run on, and stops when its ledger is closed", async () => {
    const ledger = db.openLedger();
    await run(ledger, "first", SERVED);
    await died("dead");
    await expect.poll(() => woken("dead"), { timeout: 5000 }).toEqual([{ reason: "its run died" }]);
    expect(sweeping(ledger)).toBe(true);
    await ledger.close();
    expect(sweeping(ledger)).toBe(false);
  });

  it("does not where the ledger says so, and gives way to a sweeper that somebody starts", async () => {
    const told = db.openLedger({ sweep: false });
    await run(told, "told not to", SERVED);
    expect(sweeping(told)).toBe(false);
    const script = db.openLedger();
    await run(script, "a script");
    expect(sweeping(script)).toBe(false);
    const ledger = db.openLedger();
    const own = sweepHere(ledger, { pollMs: 3_600_000 });
    await run(ledger, "has one", SERVED);
    expect(sweeping(ledger)).toBe(false);
    await own.stop();
    await run(ledger, "has none", SERVED);
    expect(sweeping(ledger)).toBe(true);
    await expect.poll(sweeps).toHaveLength(1);
    const again = sweepHere(ledger, { pollMs: 3_600_000 });
    expect(sweeping(ledger)).toBe(false);
    await again.stop();
  });

  it("may end: sweeping does not keep it alive", async () => {
    const ended = await runScript("test/worker/serverSweeper.child.ts", [db.url]);
    expect(ended).toMatchObject({ code: 0, stderr: "", lines: [{ log: ["ran"] }] });
  });

  it.each([1, "yes", null])("refuses sweep: %j", (sweep) => {
    expect(() => db.openLedger({ sweep: sweep as never })).toThrow(/`sweep` to be a boolean/);
  });
});
