// What time does to a request for approval, on the ledger's own clock: warning, the next person, the deadline.
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type ApprovalPolicy,
  approvalNode,
  approvalsOf,
  decide,
  durableGraph,
  extendApproval,
  type Ledger,
} from "../../src/index.js";
import { sweepApprovals } from "../../src/postgres/approvalTimes.js";
import { State, thread } from "../rules/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";

const HOUR = 3_600_000;

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

/** Asks whether to sign, and logs what was said. */
function signing(ledger: Ledger, policy: ApprovalPolicy) {
  const builder = new StateGraph(State)
    .addNode(
      "sign",
      approvalNode({
        ...policy,
        request: () => ({ action: "sign", args: { contract: 7 } }),
        decided: ({ status, allowed, by }) => ({ log: [`${status} by ${by}, ${allowed ? "allowed" : "not allowed"}`] }),
      }),
    )
    .addEdge(START, "sign")
    .addEdge("sign", END);
  return durableGraph(builder, { ledger });
}

async function asked(ledger: Ledger, threadId: string, policy: ApprovalPolicy) {
  const graph = signing(ledger, policy);
  await graph.invoke({ log: [] }, thread(threadId));
  const look = async () => {
    const [approval] = await approvalsOf(ledger, { threadId });
    if (approval === undefined) throw new Error("Nothing was asked.");
    return approval;
  };
  const { id } = await look();
  const history = async () =>
    (
      await db.sql<{ kind: string; detail: string | null }>(
        "select kind, detail from longhaul.approval_events where approval_id = $1 order by id",
        [id],
      )
    ).map(({ kind, detail }) => (detail === null ? kind : `${kind}: ${detail}`));
  const sweep = async () => sweepApprovals(await databaseOf(db.openLedger()));
  return { graph, look, id, history, sweep, ledger };
}

describe("a request for approval", () => {
  it("APP-05: is warned about, escalated and expires on time, late ones once, and its default is no", async () => {
    const { graph, look, id, history, sweep, ledger } = await asked(db.openLedger(), "72 h", {
      approvers: ["ann"],
      timeoutMs: 72 * HOUR,
      warnAfterMs: 57.6 * HOUR,
      escalateTo: ["bob"],
      escalateAfterMs: 48 * HOUR,
    });
    await db.advance(40 * HOUR);
    expect(await sweep()).toEqual({ expired: 0, warned: 0, escalated: 0 });
    // Nobody sweeps from hour 40 to hour 60.
    await db.advance(20 * HOUR);
    const [one, two] = await Promise.all([sweep(), sweep()]);
    expect({ warned: one.warned + two.warned, escalated: one.escalated + two.escalated }).toEqual({
      warned: 1,
      escalated: 1,
    });
    expect(await sweep()).toEqual({ expired: 0, warned: 0, escalated: 0 });
    expect((await look()).approvers).toEqual(["ann", "bob"]);
    await db.advance(12 * HOUR);
    expect(await sweep()).toEqual({ expired: 1, warned: 0, escalated: 0 });
    expect(await look()).toMatchObject({ status: "expired", decidedBy: "system:timeout" });
    expect(await history()).toEqual(["requested", "warned", "escalated: bob", "expired"]);
    const late = await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
    expect(late).toMatchObject({ result: "already-decided", approval: { status: "expired" } });
    await expect(extendApproval(ledger, { approvalId: id, by: "ann", byMs: HOUR })).rejects.toThrow(/it is expired/);
    expect((await graph.invoke(null, thread("72 h"))).log).toEqual(["expired by system:timeout, not allowed"]);
  });

  it("that nobody swept is decided by its deadline all the same when somebody comes too late", async () => {
    const { graph, id, ledger } = await asked(db.openLedger(), "unswept", { timeoutMs: HOUR });
    await db.advance(HOUR + 1);
    const late = await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved" } });
    expect(late).toMatchObject({ result: "already-decided", approval: { status: "expired" } });
    expect((await graph.invoke(null, thread("unswept"))).log).toEqual(["expired by system:timeout, not allowed"]);
  });

  it("that nobody swept is decided by its deadline when its thread runs again", async () => {
    const { graph, look } = await asked(db.openLedger(), "met", { timeoutMs: HOUR });
    await db.advance(HOUR);
    expect((await graph.invoke(null, thread("met"))).log).toEqual(["expired by system:timeout, not allowed"]);
    expect(await look()).toMatchObject({ status: "expired", decidedBy: "system:timeout" });
  });

  it("that is approved by its deadline says so, and that it was the deadline", async () => {
    const { graph, sweep } = await asked(db.openLedger(), "yes", { timeoutMs: HOUR, onTimeout: "approve" });
    await db.advance(HOUR);
    expect((await sweep()).expired).toBe(1);
    expect((await graph.invoke(null, thread("yes"))).log).toEqual(["expired by system:timeout, allowed"]);
  });

  it("may be given more time before its deadline, by who may decide", async () => {
    const { look, id, sweep, ledger } = await asked(db.openLedger(), "more", { approvers: ["ann"], timeoutMs: HOUR });
    const before = await look();
    await expect(extendApproval(ledger, { approvalId: id, by: "eve", byMs: HOUR })).rejects.toThrow(/not among/);
    const after = await extendApproval(ledger, { approvalId: id, by: "ann", byMs: HOUR });
    expect((after.deadlineAt?.getTime() ?? 0) - (before.deadlineAt?.getTime() ?? 0)).toBe(HOUR);
    await db.advance(1.5 * HOUR);
    expect((await sweep()).expired).toBe(0);
    expect((await look()).status).toBe("pending");
  });

  it("TIM-01: of thirty days is not due before, and one without an end never is", async () => {
    const month = await asked(db.openLedger(), "month", { timeoutMs: 30 * 24 * HOUR });
    const ever = await asked(db.openLedger(), "ever", { timeoutMs: Number.POSITIVE_INFINITY });
    expect((await ever.look()).deadlineAt).toBeUndefined();
    await db.advance(29 * 24 * HOUR);
    await month.sweep();
    expect((await month.look()).status).toBe("pending");
    await db.advance(24 * HOUR);
    await month.sweep();
    expect((await month.look()).status).toBe("expired");
    expect((await ever.look()).status).toBe("pending");
  });

  it("SER-05: takes a description of 10 kB, and refuses one that nobody would read", async () => {
    const ledger = db.openLedger();
    const build = (size: number) =>
      durableGraph(
        new StateGraph(State)
          .addNode(
            "sign",
            approvalNode({
              request: () => ({ action: "sign", args: {}, description: "x".repeat(size) }),
              decided: () => ({ log: [] }),
            }),
          )
          .addEdge(START, "sign")
          .addEdge("sign", END),
        { ledger },
      );
    await build(10_000).invoke({ log: [] }, thread("long"));
    expect((await approvalsOf(ledger, { threadId: "long" }))[0]?.description).toHaveLength(10_000);
    await expect(build(30_000).invoke({ log: [] }, thread("too long"))).rejects.toThrow(/at most 20000/);
    expect(await approvalsOf(ledger, { threadId: "too long" })).toEqual([]);
  });
});
