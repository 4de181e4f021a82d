// INT-06 in the code-migration graph: its approval is a pause behind steps that are tried again and a breaker, and nothing takes
// it for a failure.
import { expect, test } from "vitest";
import { approvalsOf, decide } from "../../src/index.js";
import { migrationHarness, PACKAGE } from "../graphs/codeMigration/harness.js";
import { traceServer } from "../support/traceServer.js";

const at = await migrationHarness();
const collector = await traceServer();

test("INT-06: the pause of the approval surfaces once, costs no retry, opens no breaker, is no error's span, and delivers once", async () => {
  const thread = "INT-06";
  const repository = at.repository(PACKAGE);
  const spans = await collector.tracing(async () => {
    const paused = await at.graph.invoke({ package: "", repository }, at.config(thread));
    expect(paused).toMatchObject({ __interrupt__: [{ value: { kind: "APPROVAL", action: "deliver-migration" } }] });
    // Asked again without an answer it is the same question.
    expect(await at.graph.invoke(null, at.config(thread))).toMatchObject({ __interrupt__: [{}] });
  });
  const { tasks, next } = await at.graph.getState(at.config(thread));
  expect(next).toEqual(["approve"]);
  expect(tasks.flatMap(({ interrupts }) => interrupts)).toHaveLength(1);
  expect(tasks.map(({ error }) => error)).toEqual([undefined]);
  expect(spans.filter(({ status }) => status.code === 2)).toEqual([]);
  expect(await at.database.sql("select state, error from longhaul.threads where thread_id = $1", [thread])).toEqual([
    { state: "waiting", error: null },
  ]);
  expect(
    await at.database.sql("select name from longhaul.steps where thread_id = $1 and failures > 0", [thread]),
  ).toEqual([]);
  expect(await at.database.sql("select name from longhaul.breakers")).toEqual([]);
  const requests = await approvalsOf(at.ledger, { threadId: thread });
  expect(requests.map(({ status }) => status)).toEqual(["pending"]);
  await decide(at.ledger, { approvalId: requests[0]?.id ?? "", by: "ann", decision: { status: "approved" } });
  expect(await at.graph.invoke(null, at.config(thread))).toMatchObject({ outcome: { status: "delivered" } });
  const writes = await at.database.sql(
    "select attempt, failures from longhaul.steps where thread_id = $1 and effect = 'write' and (attempt <> 1 or failures <> 0)",
    [thread],
  );
  expect(writes).toEqual([]);
});
