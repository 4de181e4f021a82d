import { randomUUID } from "node:crypto";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import type { StepIntent } from "../../src/core/ledger.js";
import { drainReason, durableGraph, durableNode } from "../../src/index.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

const State = Annotation.Root({ receipt: Annotation<string> });
const LEASE_MS = 3000;

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const thread = (thread_id: string) => ({ configurable: { thread_id } });
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** One worker: its own ledger, connections and graph. The step lasts until `gate` opens. */
function worker(executions: string[], gate: Promise<unknown>) {
  const builder = new StateGraph(State)
    .addNode(
      "slow",
      durableNode(State, async (_state, { step }) => ({
        receipt: await step.write("slow", {}, async ({ idempotencyKey }) => {
          executions.push(idempotencyKey);
          await gate;
          return "done";
        }),
      })),
    )
    .addEdge(START, "slow")
    .addEdge("slow", END);
  return durableGraph(builder, { ledger: db.openLedger({ leaseMs: LEASE_MS }) });
}

const attempts = (threadId: string) =>
  db.sql("select attempt, state from longhaul.steps where thread_id = $1", [threadId]);

describe("DSE-06: one journalled attempt, one execution", () => {
  it("DSE-06: refuses the second of two schedulers that wake one run 100 ms apart, for as long as the step lasts", async () => {
    const executions: string[] = [];
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const [first, second] = [worker(executions, gate), worker(executions, gate)];
    const wake = (graph: typeof first) => graph.invoke({ receipt: "" }, thread("run")).catch((error: unknown) => error);
    const started = wake(first);
    await later(100);
    const refused = [await wake(second)];
    await expect.poll(() => executions.length, { timeout: 20_000 }).toBe(1);
    // The step lasts longer than the lease, so it is the renewals that keep the second scheduler out.
    const leases = new Set<string>();
    const renewals = async () => {
      const [row] = await db.sql<{ lease_until: Date }>(
        "select lease_until from longhaul.threads where thread_id = 'run'",
      );
      return leases.add(String(row?.lease_until.getTime())).size;
    };
    await expect.poll(renewals, { timeout: 30_000, interval: 100 }).toBeGreaterThan(4);
    refused.push(await wake(second));
    expect(refused.map((error) => drainReason(error)?.kind)).toEqual(["busy", "busy"]);
    open();
    expect(await started).toMatchObject({ receipt: "done" });
    expect(executions).toHaveLength(1);
    expect(await attempts("run")).toEqual([{ attempt: 1, state: "SUCCEEDED" }]);
  });

  it("DSE-06: gives the run to exactly one of eight schedulers that wake it at the same moment", async () => {
    const executions: string[] = [];
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let refused = 0;
    const wake = async (graph: ReturnType<typeof worker>): Promise<unknown> => {
      const result = await graph
        .invoke({ receipt: "" }, thread("crowd"))
        .catch((error: unknown) => drainReason(error)?.kind);
      // The run lasts until all the others have been turned away.
      if (++refused === 7) open();
      return result;
    };
    const results = await Promise.all(Array.from({ length: 8 }, () => wake(worker(executions, gate))));
    expect(executions).toHaveLength(1);
    expect(results.filter((result) => result === "busy")).toHaveLength(7);
    expect(await attempts("crowd")).toEqual([{ attempt: 1, state: "SUCCEEDED" }]);
  });

  it("DSE-06: lets one of sixteen claims of a step through, and refuses a claim with an old fencing token", async () => {
    const { steps, runs } = await db.openLedger()[LEDGER_PARTS].open();
    const acquired = await runs.acquire("claims", randomUUID(), 60_000, "run");
    if (!("ticket" in acquired)) throw new Error("The thread is busy.");
    const { ticket } = acquired;
    const claims = Array.from({ length: 16 }, () => steps.begin(ticket, intent("claims"), randomUUID()));
    const answers = await Promise.all(claims);
    expect(answers.filter((answer) => "claim" in answer)).toHaveLength(1);
    expect(answers.filter((answer) => "existing" in answer)).toHaveLength(15);
    // A newer run of the thread fences this one.
    await runs.release(ticket, "done");
    await runs.acquire("claims", randomUUID(), 60_000, "run");
    const fenced = await steps.begin(ticket, { ...intent("claims"), key: "b".repeat(64) }, randomUUID());
    expect(fenced).toEqual({ lost: "lease" });
    expect(await attempts("claims")).toEqual([{ attempt: 1, state: "RUNNING" }]);
  });
});

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
    settleMs: 1000,
    keyLifetimeMs: undefined,
    leaseMs: 30_000,
  };
}
