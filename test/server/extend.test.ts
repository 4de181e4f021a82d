// More time for a request and for a thread, from a page; what a cancel leaves; and a name in a body, which is nobody's.
import { START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { approvalNode, approvalsOf, durableGraph, durableNode, type Ledger } from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type Browser, signIn, startInbox } from "./harness.js";

let db: TestDatabase;
let ledger: Ledger;
let ann: Browser;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  ann = await signIn(await startInbox({ ledger, user: { id: "ann" } }));
});

const HOUR = 3_600_000;
/** Pays, then asks. */
async function asking(threadId: string, timeoutMs: number) {
  const pay = durableNode(State, async (_, { step }) => ({ log: [await step.write("pay", 1, async () => "po_1")] }));
  const ask = approvalNode({ request: () => ({ action: "go", args: {} }), timeoutMs, decided: () => ({}) });
  const builder = new StateGraph(State)
    .addNode("pay", pay)
    .addNode("ask", ask)
    .addEdge(START, "pay")
    .addEdge("pay", "ask");
  const budget = { deadline: new Date(Date.now() + 24 * HOUR) };
  await durableGraph(builder, { ledger, budget }).invoke({ log: [] }, thread(threadId));
  const [approval] = await approvalsOf(ledger, { threadId });
  if (approval === undefined) throw new Error("Nothing was asked.");
  return approval;
}

describe("a page", () => {
  it("gives a request more time, and refuses what is no number of hours", async () => {
    const { id, deadlineAt } = await asking("more time", HOUR);
    expect(await (await ann.get(`/inbox/approvals/${id}`)).text()).toContain("Give it more time");
    const path = `/inbox/approvals/${id}/extend`;
    for (const hours of ["", "x", "-1", "0", "1e9"]) expect((await ann.submit(path, { hours })).status).toBe(400);
    const answer = await ann.submit(path, { hours: "2", reason: "on holiday" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/inbox/approvals/${id}?done=extended`]);
    const [now] = await approvalsOf(ledger, { threadId: "more time" });
    expect(now?.deadlineAt).toEqual(new Date((deadlineAt?.getTime() ?? 0) + 2 * HOUR));
    const endless = await asking("no deadline", Number.POSITIVE_INFINITY);
    expect(await (await ann.get(`/inbox/approvals/${endless.id}`)).text()).not.toContain("Give it more time");
    expect((await ann.submit(`/inbox/approvals/${endless.id}/extend`, { hours: "1" })).status).toBe(400);
  });

  it("moves a thread's deadline to a later time", async () => {
    await asking("later", HOUR);
    const move = (deadline: string) => ann.submit("/inbox/raise", { thread: "later", scope: "later", deadline });
    for (const deadline of ["yesterday", "2020-01-01T00:00", "2030-13-01T00:00"])
      expect((await move(deadline)).status).toBe(400);
    expect((await move("2099-03-01T04:30")).status).toBe(303);
    const [row] = await db.sql<{ deadline: Date }>("select deadline from longhaul.budgets where scope = 'later'");
    expect(row?.deadline).toEqual(new Date("2099-03-01T04:30Z"));
  });

  it("says before and after a cancel how many writes stand, and what undoes them", async () => {
    await asking("paid", HOUR);
    for (const when of ["before", "after"]) {
      expect([when, await (await ann.get("/runs/paid")).text()]).toEqual([
        when,
        expect.stringMatching(/1 write stands .+longhaul compensate .*paid/),
      ]);
      await ann.submit("/inbox/cancel", { thread: "paid" });
    }
  });
});

it("A body that names who acts is refused, not taken without it", async () => {
  const { id } = await asking("by", HOUR);
  const { csrf } = (await (await ann.get("/api/session")).json()) as { csrf: string };
  const headers = { "x-csrf-token": csrf };
  for (const body of [{ status: "approved", by: "eve" }, { decision: { status: "approved", by: "eve" } }])
    expect((await ann.json(`/api/approvals/${id}/decide`, body, headers)).status).toBe(400);
  expect((await ann.json(`/api/approvals/${id}/extend`, { byMs: HOUR, by: "eve" }, headers)).status).toBe(400);
  expect((await approvalsOf(ledger, { threadId: "by" }))[0]).toMatchObject({ status: "pending" });
});
