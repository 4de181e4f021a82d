// INT-03 (langchainjs#11437, #11125, #11391): rejecting one call of a batch drops the approved ones.
import { tool } from "@langchain/core/tools";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { approvalsOf, decide, durableGraph } from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { chat } from "../agents/agents.js";
import { agentHarness, ask, lastText, outcome, thread } from "../agents/harness.js";

const harness = agentHarness();

/** Tools that note what they did. */
function gated(did: string[]) {
  const note = (name: string) =>
    tool(async ({ n }: { n: number }) => `${name} ${did.push(`${name} ${n}`)}`, {
      name,
      description: name,
      schema: z.object({ n: z.number() }),
    });
  const middleware = [
    durableAgent({
      tools: { refund: WRITE, remove: WRITE, note: WRITE },
      approvals: { refund: {}, remove: { approvers: ["role:boss"] } },
    }),
  ] as const;
  return { tools: [note("refund"), note("remove"), note("note")], middleware };
}
const WRITE = { version: "1.0.0", effect: "write" } as const;

const makers = {
  createAgent: (did: string[]) => createAgent({ model: chat(harness.world("")), ...gated(did) }),
  "createAgent, its calls in one task": (did: string[]) =>
    createAgent({ model: chat(harness.world("")), ...gated(did), version: "v1" }),
  deepagents: (did: string[]) => createDeepAgent({ model: chat(harness.world("")), ...gated(did) }),
} as const;

describe.each(Object.keys(makers) as (keyof typeof makers)[])("INT-03: %s", (kind) => {
  it("INT-03: of a batch A is approved, B rejected and C needs no approval: each has its answer and its effect", async () => {
    const did: string[] = [];
    const { db, model } = harness;
    const ledger = db.openLedger();
    const agent = durableGraph(makers[kind](did) as ReturnType<typeof makers.createAgent>, { ledger });
    const batch = [
      { name: "refund", args: { n: 1 }, id: "a" },
      { name: "remove", args: { n: 2 }, id: "b" },
      { name: "note", args: { n: 3 }, id: "c" },
    ];
    const paused = outcome(await agent.invoke(ask({ main: [batch] }), thread(kind)));
    expect(paused.__interrupt__).toHaveLength(2);
    expect(did).toEqual(["note 3"]);
    const open = await approvalsOf(ledger, { threadId: kind });
    for (const { id: approvalId, action } of open) {
      const decision =
        action === "refund" ? { status: "approved" as const } : { status: "rejected" as const, comment: "keep it" };
      await decide(ledger, { approvalId, by: "ann", roles: ["boss"], decision });
    }
    const result = await agent.invoke(null, thread(kind));
    expect(lastText(result)).toBe("done");
    expect(did).toEqual(["note 3", "refund 1"]);
    const answers = outcome(result).messages.filter((message) => message.getType() === "tool");
    expect(answers.map((message) => message.text)).toEqual([
      "refund 2",
      'The call of "remove" was rejected by ann: keep it. It was not made. Do not make it again as it is.',
      "note 1",
    ]);
    // The model refuses a conversation with an unanswered call.
    expect(model.requests).toHaveLength(2);
  });
});

it("INT-03: a call that began beside one that pauses is made, however long its tool's version takes to look up", async () => {
  const did: string[] = [];
  const { db } = harness;
  const agent = durableGraph(
    makers["createAgent, its calls in one task"](did) as ReturnType<typeof makers.createAgent>,
    {
      ledger: db.openLedger({ namespace: "slow" }),
    },
  );
  const batch = [
    { name: "refund", args: { n: 1 }, id: "a" },
    { name: "note", args: { n: 3 }, id: "c" },
  ];
  const other = new pg.Client({ connectionString: db.url });
  await other.connect();
  try {
    // Whoever registers the same version now waits until this ends.
    await other.query("begin");
    await other.query(
      "insert into longhaul.tool_versions values ('slow', 'note', '1.0.0', '', '{}', longhaul.ledger_now())",
    );
    const paused = agent.invoke(ask({ main: [batch] }), thread("slow"));
    await expect
      .poll(async () => (await approvalsOf(db.openLedger({ namespace: "slow" }), { threadId: "slow" })).length)
      .toBe(1);
    expect(did).toEqual([]);
    await other.query("rollback");
    expect(outcome(await paused).__interrupt__).toHaveLength(1);
    expect(did).toEqual(["note 3"]);
  } finally {
    await other.end();
  }
});
