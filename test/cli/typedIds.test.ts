// Ids typed in part, and what the commands of approvals say where there is nothing to do.
import { START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { typedApproval, typedStep } from "../../src/cli/typedId.js";
import { approvalNode, approvalsOf, cancelRun, decide, durableGraph, type Ledger } from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { oneNode, State, stepsOf, thread } from "../rules/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
let ledger: OpenedLedger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

async function asked(on: Ledger, threadId: string): Promise<string> {
  const node = approvalNode({ request: () => ({ action: "go", args: {} }), decided: () => ({}) });
  await durableGraph(new StateGraph(State).addNode("ask", node).addEdge(START, "ask"), { ledger: on }).invoke(
    { log: [] },
    thread(threadId),
  );
  return (await approvalsOf(on, { threadId }))[0]?.id ?? "";
}

describe("an id that was typed in part", () => {
  it("of a request is the only one that begins so; several are listed", async () => {
    const id = await asked(ledger, "one");
    const database = await databaseOf(ledger);
    expect(await typedApproval(database, id.slice(0, 12).toUpperCase())).toBe(id);
    expect(await typedApproval(database, id)).toBe(id);
    const others = ["two", "three"];
    for (const [i, threadId] of others.entries()) {
      const other = await asked(ledger, threadId);
      await db.sql("update longhaul.approvals set id = $1 where id = $2", [`abcdef${i}${other.slice(7)}`, other]);
    }
    await expect(typedApproval(database, "abcdef")).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringMatching(/abcdef1[\da-f]{25} {2}go, thread three, pending\n {2}abcdef0/),
    });
    expect(await typedApproval(database, "abcdef1")).toMatch(/^abcdef1/);
    await expect(typedApproval(database, "0000dead0000")).rejects.toMatchObject({ code: "NOT_FOUND" });
    // Too little, or no beginning of an id: left to what takes it.
    for (const typed of ["abc", "", "x'; --", "%", `${id}00`]) expect(await typedApproval(database, typed)).toBe(typed);
  });

  it("of a step is the only one that begins so", async () => {
    await oneNode(ledger, (step) => step.write("pay", 1, async () => 1)).invoke({ log: [] }, thread("steps"));
    const [step] = await stepsOf(db, "steps");
    const database = await databaseOf(ledger);
    for (const digits of [4, 7, 63])
      expect(await typedStep(database, step?.key.slice(0, digits) ?? "")).toBe(step?.key);
    await expect(typedStep(database, "00000000")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("serves the commands, which say that a worker goes on, and that there is no deadline to extend", async () => {
    const id = await asked(ledger, "typed");
    const extended = await longhaul(db.url, "approvals", "extend", id.slice(0, 10), "--hours", "2", "--by", "ann");
    expect([extended.code, extended.lines]).toMatchObject([
      2,
      [{ error: "INVALID_OPTION", message: expect.stringContaining("has no deadline") }],
    ]);
    const rejected = await longhaul(db.url, "approvals", "reject", id.slice(0, 10), "--by", "ann");
    expect([rejected.code, rejected.lines]).toMatchObject([0, [{ id, status: "rejected" }]]);
  });

  it("tells of a cancel in a thread's history", async () => {
    await asked(ledger, "stopped");
    await cancelRun(ledger, { threadId: "stopped", by: "ann", reason: "enough" });
    const { lines } = await longhaul(db.url, "show", "stopped", "--history");
    expect(lines).toMatchObject([
      { threadId: "stopped", event: "cancel requested", by: "ann", reason: "enough" },
      { event: "cancelled" },
    ]);
  });
});

describe("who decides", () => {
  it.each(["аnn", "ann\u200b", "ａｎｎ", "αnn", "ﬁona"])(
    "is refused under a name that looks like another: %j",
    async (by) => {
      const id = await asked(ledger, `looks like ${by}`);
      await expect(decide(ledger, { approvalId: id, by, decision: { status: "approved" } })).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
    },
  );

  it.each(["Zoë", "Анна", "Ὀδυσσεύς", "山田", "ann@example.com"])("may be called %s", async (by) => {
    const id = await asked(ledger, `is ${by}`);
    await expect(decide(ledger, { approvalId: id, by, decision: { status: "approved" } })).resolves.toMatchObject({
      result: "applied",
    });
  });
});
