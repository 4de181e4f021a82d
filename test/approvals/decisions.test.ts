// Approvals: one decision wins, for exactly what was asked, by who may; and the graph goes on with it once.
import { AIMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, Command, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  type ApprovalPolicy,
  approvalNode,
  approvalsOf,
  cancelRun,
  decide,
  durable,
  durableGraph,
  durableTool,
  type Ledger,
  type ResumeAs,
  redrive,
  requestApproval,
} from "../../src/index.js";
import { advanceClock } from "../../src/testing/index.js";
import { type Node, nodeGraph } from "../budget/nodeGraph.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const Payment = Annotation.Root({ amount: Annotation<number>, log: Annotation<string[]> });

/** Asks, then pays what was allowed. */
function payment(ledger: Ledger, policy: ApprovalPolicy = {}) {
  const paid: number[] = [];
  const builder = new StateGraph(Payment)
    .addNode(
      "approve",
      approvalNode({
        ...policy,
        request: ({ amount }: typeof Payment.State) => ({ action: "pay", args: { amount } }),
        decided: ({ allowed, args, by }) =>
          new Command({ update: { amount: args.amount, log: [by] }, goto: allowed ? "pay" : END }),
      }),
      { ends: ["pay", END] },
    )
    .addNode("pay", async ({ amount, log }, runtime) => {
      const { step } = durable(runtime);
      await step.write("pay", { amount }, async () => {
        paid.push(amount);
        return "paid";
      });
      return { log: [...log, `paid ${amount}`] };
    })
    .addEdge(START, "approve")
    .addEdge("pay", END);
  return { graph: durableGraph(builder, { ledger }), paid };
}

const pendingOf = async (ledger: Ledger, threadId: string) => approvalsOf(ledger, { status: "pending", threadId });
const statusesOf = async (ledger: Ledger, threadId: string) =>
  (await approvalsOf(ledger, { threadId })).map(({ status }) => status).sort();
const one = async (ledger: Ledger, threadId: string) => {
  const [approval] = await pendingOf(ledger, threadId);
  if (approval === undefined) throw new Error(`Thread "${threadId}" asks nothing.`);
  return approval;
};
const historyOf = async (id: string) =>
  (
    await db.sql<{ kind: string }>("select kind from longhaul.approval_events where approval_id = $1 order by id", [id])
  ).map(({ kind }) => kind);

describe("an approval node", () => {
  it("pauses, and goes on once with what was decided in another process of the ledger", async () => {
    const { graph, paid } = payment(db.openLedger());
    const paused = (await graph.invoke({ amount: 5, log: [] }, thread("plain"))) as unknown as {
      __interrupt__: { id: string; value: Record<string, unknown> }[];
    };
    const other = db.openLedger();
    const asked = await one(other, "plain");
    expect(paused.__interrupt__).toMatchObject([
      {
        id: asked.id,
        value: {
          kind: "APPROVAL",
          action: "pay",
          args: { amount: 5 },
          action_request: { action: "pay", args: { amount: 5 } },
          action_requests: [{ name: "pay" }],
          actionRequests: [{ name: "pay" }],
          config: { allow_accept: true },
        },
      },
    ]);
    expect(asked).toMatchObject({ action: "pay", args: { amount: 5 }, status: "pending", node: "approve" });
    const { result } = await decide(other, { approvalId: asked.id, by: "ann", decision: { status: "approved" } });
    expect(result).toBe("applied");
    expect(await db.sql("select reason from longhaul.wakes where thread_id = 'plain'")).toHaveLength(1);
    expect(await graph.invoke(null, thread("plain"))).toMatchObject({ log: ["ann", "paid 5"] });
    expect(paid).toEqual([5]);
    expect(await historyOf(asked.id)).toEqual(["requested", "approved", "used"]);
  });

  it("does not do what was rejected, and does what was edited as it was edited", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 5, log: [] }, thread("no"));
    const no = await one(ledger, "no");
    await decide(ledger, { approvalId: no.id, by: "ann", decision: { status: "rejected", comment: "too much" } });
    expect(await graph.invoke(null, thread("no"))).toMatchObject({ log: ["ann"] });
    await graph.invoke({ amount: 9, log: [] }, thread("edit"));
    const edit = await one(ledger, "edit");
    await decide(ledger, { approvalId: edit.id, by: "bob", decision: { status: "edited", args: { amount: 2 } } });
    expect(await graph.invoke(null, thread("edit"))).toMatchObject({ amount: 2, log: ["bob", "paid 2"] });
    expect(paid).toEqual([2]);
  });

  it("APP-06: asking four times is one request, and its approval is used once", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 5, log: [] }, thread("four"));
    const first = await one(ledger, "four");
    for (let again = 0; again < 3; again++) await graph.invoke(null, thread("four"));
    expect((await approvalsOf(ledger, { threadId: "four" })).map(({ id }) => id)).toEqual([first.id]);
    await decide(ledger, { approvalId: first.id, by: "ann", decision: { status: "approved" } });
    await graph.invoke(null, thread("four"));
    expect(paid).toEqual([5]);
    expect(await statusesOf(ledger, "four")).toEqual(["approved"]);
  });

  it("is closed by new input, decided or not: what was said no longer counts", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 5, log: [] }, thread("moved on"));
    const old = await one(ledger, "moved on");
    await decide(ledger, { approvalId: old.id, by: "ann", decision: { status: "approved" } });
    await graph.invoke({ amount: 700, log: [] }, thread("moved on"));
    expect(paid).toEqual([]);
    expect(await statusesOf(ledger, "moved on")).toEqual(["pending", "superseded"]);
    const late = await decide(ledger, { approvalId: old.id, by: "ann", decision: { status: "approved" } });
    expect(late).toMatchObject({ result: "already-decided", approval: { status: "superseded" } });
  });
});

describe("deciding", () => {
  it("DSE-03: five approvals at once from five ledgers apply one, and the others are told by whom", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 1, log: [] }, thread("five"));
    const { id } = await one(ledger, "five");
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map((nth) =>
        decide(db.openLedger(), { approvalId: id, by: `user ${nth}`, decision: { status: "approved" } }),
      ),
    );
    expect(answers.map(({ result }) => result).sort()).toEqual([
      "already-decided",
      "already-decided",
      "already-decided",
      "already-decided",
      "applied",
    ]);
    const winners = new Set(
      answers.map(({ approval }) => `${approval.decidedBy} ${approval.decidedAt?.toISOString()}`),
    );
    expect(winners.size).toBe(1);
    await graph.invoke(null, thread("five"));
    expect(paid).toEqual([1]);
    expect((await historyOf(id)).filter((kind) => kind === "approved")).toHaveLength(1);
  });

  it("DSE-04: approve and reject at once have one winner, round after round, and what it says is done", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    let approved = 0;
    for (let round = 0; round < 100; round++) {
      const id = `round ${round}`;
      await graph.invoke({ amount: round, log: [] }, thread(id));
      const { id: approvalId } = await one(ledger, id);
      const [yes, no] = await Promise.all([
        decide(ledger, { approvalId, by: "ann", decision: { status: "approved" } }),
        decide(ledger, { approvalId, by: "bob", decision: { status: "rejected" } }),
      ]);
      expect([yes.result, no.result].sort()).toEqual(["already-decided", "applied"]);
      expect(yes.approval.status).toBe(no.approval.status);
      const again = await decide(ledger, { approvalId, by: "ann", decision: { status: "approved" } });
      expect(again.approval.decidedBy).toBe(yes.approval.decidedBy);
      await graph.invoke(null, thread(id));
      if (yes.result === "applied") approved++;
      expect(paid).toHaveLength(approved);
    }
  }, 60_000);

  it("APP-02: is refused to everyone who may not, which is kept, and the request stays open", async () => {
    const ledger = db.openLedger();
    const { graph } = payment(ledger, { approvers: ["u1", "role:boss"] });
    await graph.invoke({ amount: 1, log: [] }, thread("who"));
    const { id } = await one(ledger, "who");
    const say = (by: string, roles: string[] = []) =>
      decide(ledger, { approvalId: id, by, roles, decision: { status: "approved" } });
    await expect(say("u2")).rejects.toMatchObject({ code: "DECISION_REFUSED", status: 403 });
    await expect(say("u3", ["clerk"])).rejects.toMatchObject({ code: "DECISION_REFUSED" });
    await expect(say("agent:who")).rejects.toMatchObject({ code: "DECISION_REFUSED" });
    await expect(say("system:timeout")).rejects.toMatchObject({ code: "DECISION_REFUSED" });
    await expect(say("")).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(graph.invoke(new Command({ resume: true }), thread("who"))).rejects.toThrow(/for a user who is known/);
    expect(await historyOf(id)).toEqual(["requested", "refused", "refused", "refused", "refused", "refused"]);
    expect((await one(ledger, "who")).status).toBe("pending");
    expect((await say("u9", ["boss"])).result).toBe("applied");
  });

  it("refuses ids that nobody knows, and answers that are none", async () => {
    const ledger = db.openLedger();
    const decision = { status: "approved" } as const;
    await expect(decide(ledger, { approvalId: "0".repeat(32), by: "ann", decision })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    for (const odd of [null, undefined, {}, [], { status: "pending" }, { status: "edited" }]) {
      await expect(decide(ledger, { approvalId: "x", by: "ann", decision: odd as never })).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
    }
  });
});

describe("what happens by time", () => {
  it("is refused at construction where it cannot be", () => {
    const make = (policy: ApprovalPolicy) => () => payment(db.openLedger(), policy);
    for (const timeoutMs of [0, -1, Number.NaN, 1e300]) expect(make({ timeoutMs })).toThrow(/timeoutMs/);
    expect(make({ approvers: [] })).toThrow(/at least one name/);
    expect(make({ approvers: ["system:timeout"] })).toThrow(/name people/);
    expect(make({ escalateTo: ["bob"] })).toThrow(/escalateAfterMs/);
    expect(make({ timeoutMs: 1000, warnAfterMs: 1000 })).toThrow(/before its deadline/);
    expect(make({ timeoutMs: Number.POSITIVE_INFINITY })).not.toThrow();
  });
});

describe("an answer by a resume value", () => {
  const answers: [string, unknown, string][] = [
    ["true", true, "approved"],
    ["false", false, "rejected"],
    ["a word", "approve", "approved"],
    ["Agent Inbox's accept", [{ type: "accept", args: null }], "approved"],
    ["Agent Inbox's ignore", [{ type: "ignore", args: null }], "rejected"],
    ["Agent Inbox's edit", [{ type: "edit", args: { action: "pay", args: { amount: "3" } } }], "edited"],
    ["agent-chat-ui's decision", { decisions: [{ type: "approve" }] }, "approved"],
    [
      "agent-chat-ui's edit",
      { decisions: [{ type: "edit", edited_action: { name: "pay", args: { amount: 3 } } }] },
      "edited",
    ],
    [
      "the middleware's edit",
      { decisions: [{ type: "edit", editedAction: { name: "pay", args: { amount: 3 } } }] },
      "edited",
    ],
    ["the middleware's rejection", { decisions: [{ type: "reject", message: "no" }] }, "rejected"],
  ];
  it.each(answers)("takes %s", async (name, answer, status) => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 8, log: [] }, thread(`as ${name}`));
    const { id } = await one(ledger, `as ${name}`);
    await graph.invoke(new Command({ resume: name === "true" ? { [id]: answer } : answer }), thread(`as ${name}`));
    expect(await statusesOf(ledger, `as ${name}`)).toEqual([status]);
    expect(paid).toEqual(status === "rejected" ? [] : [status === "edited" ? 3 : 8]);
  });

  it("INT-07, INT-08: is refused when it names nothing that is asked, or says nothing, and nothing changes", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 8, log: [] }, thread("bad"));
    await graph.invoke({ amount: 8, log: [] }, thread("elsewhere"));
    const { id } = await one(ledger, "bad");
    const elsewhere = await one(ledger, "elsewhere");
    const resume = (value: unknown) => graph.invoke(new Command({ resume: value }), thread("bad"));
    await expect(resume({ "0123456789abcdef0123456789abcdef": "yes" })).rejects.toThrow(id);
    await expect(resume({ [elsewhere.id]: "yes" })).rejects.toThrow(id);
    for (const odd of [null, {}, [], 0, "", "perhaps", { [id]: null }, { [id]: {} }, { [id]: [] }]) {
      await expect(resume(odd)).rejects.toThrow(id);
    }
    await expect(resume(undefined)).rejects.toThrow();
    expect((await one(ledger, "bad")).status).toBe("pending");
    expect((await one(ledger, "elsewhere")).status).toBe("pending");
    await resume({ [id]: "yes" });
    expect(paid).toEqual([8]);
    await expect(resume({ [id]: "no" })).rejects.toMatchObject({ code: "ALREADY_DECIDED" });
    expect(paid).toEqual([8]);
  });

  it("is by the user whom the server knows, and of several requests by id alone", async () => {
    const ledger = db.openLedger();
    const node: Node = async (_state, runtime) => {
      const ask = (action: string) => requestApproval(runtime, { action, args: {} }, { approvers: ["ann"] });
      const both = await Promise.all([ask("first"), ask("second")]);
      return { log: both.map(({ status, by }) => `${status} by ${by}`) };
    };
    const builder = new StateGraph(State).addNode("node", node).addEdge(START, "node").addEdge("node", END);
    const resumeAs: ResumeAs = ({ langgraph_auth_user: user }) => user && { by: user.identity };
    const graph = durableGraph(builder, { ledger, resumeAs });
    const paused = (await graph.invoke({ log: [] }, thread("two"))) as unknown as { __interrupt__: { id: string }[] };
    const open = await pendingOf(ledger, "two");
    const [first, second] = ["first", "second"].map((name) => open.find(({ action }) => action === name));
    expect(paused.__interrupt__.map(({ id }) => id).sort()).toEqual([first?.id, second?.id].sort());
    await expect(graph.invoke(new Command({ resume: "approve" }), thread("two"))).rejects.toThrow(/2 things at once/);
    const ann = { configurable: { thread_id: "two", langgraph_auth_user: { identity: "ann" } } };
    const eve = { configurable: { thread_id: "two", langgraph_auth_user: { identity: "eve" } } };
    const resume = { [first?.id ?? ""]: "approve", [second?.id ?? ""]: "reject" };
    await expect(graph.invoke(new Command({ resume }), eve)).rejects.toThrow(/"eve" is not among/);
    expect((await graph.invoke(new Command({ resume }), ann)).log).toEqual(["approved by ann", "rejected by ann"]);
  });
});

describe("INT-01: a node that asks twice", () => {
  it("does what it did before only once", async () => {
    const ledger = db.openLedger();
    const done: string[] = [];
    let passes = 0;
    const graph = nodeGraph(ledger, async (_state, runtime) => {
      passes++;
      const { step } = durable(runtime);
      await step.write("message", {}, async () => done.push("message"));
      const first = await requestApproval(runtime, { action: "ask", args: { question: 1 } });
      const second = await requestApproval(runtime, { action: "ask", args: { question: 2 } });
      if (first.allowed && second.allowed) await step.write("charge", {}, async () => done.push("charge"));
      return { log: ["end"] };
    });
    await graph.invoke({ log: [] }, thread("twice"));
    for (let round = 0; round < 2; round++) {
      await decide(ledger, {
        approvalId: (await one(ledger, "twice")).id,
        by: "ann",
        decision: { status: "approved" },
      });
      await graph.invoke(null, thread("twice"));
    }
    expect({ done, passes }).toEqual({ done: ["message", "charge"], passes: 3 });
  });
});

/** A turn of an agent: one message with calls, and the tools that answer it. */
function agent(
  ledger: Ledger,
  calls: () => { name: string; args: Record<string, unknown>; id: string }[],
  done: string[],
) {
  const make = (name: string, approval?: object) =>
    durableTool(
      tool(async (input: { n: number }) => `${name} ${done.push(`${name} ${input.n}`) > 0 ? input.n : ""}`, {
        name,
        description: `does ${name}`,
        schema: z.object({ n: z.number() }),
      }),
      { version: "1.0.0", effect: "write", ...(approval === undefined ? {} : { approval }) },
    );
  const tools = [
    make("refund", {}),
    make("remove", {}),
    make("note"),
    make("gift", { when: ({ n }: { n: number }) => n > 10 }),
  ];
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("act", async ({ messages }, config) => {
      const message = new AIMessage({
        content: "",
        tool_calls: calls().map((call) => ({ ...call, type: "tool_call" as const })),
      });
      const answered = (await new ToolNode(tools).invoke({ messages: [...messages, message] }, config)) as {
        messages: ToolMessage[];
      };
      return { messages: [message, ...answered.messages] };
    })
    .addEdge(START, "act")
    .addEdge("act", END);
  return durableGraph(builder, { ledger });
}

describe("tools that need approval", () => {
  it("INT-02, INT-03: calls of one message are decided one by one, and each has its answer", async () => {
    const ledger = db.openLedger();
    for (let round = 0; round < 20; round++) {
      const done: string[] = [];
      const id = `batch ${round}`;
      const graph = agent(
        ledger,
        () => [
          { name: "refund", args: { n: 1 }, id: "a" },
          { name: "remove", args: { n: 2 }, id: "b" },
          { name: "note", args: { n: 3 }, id: "c" },
          { name: "gift", args: { n: 4 }, id: "d" },
        ],
        done,
      );
      const paused = (await graph.invoke({ messages: [] }, thread(id))) as unknown as {
        __interrupt__: { id: string }[];
      };
      expect(paused.__interrupt__).toHaveLength(2);
      const open = await pendingOf(ledger, id);
      expect(open.map(({ action }) => action).sort()).toEqual(["refund", "remove"]);
      for (const { id: approvalId, action } of open) {
        await decide(ledger, {
          approvalId,
          by: "ann",
          decision: action === "refund" ? { status: "approved" } : { status: "rejected", comment: "keep it" },
        });
      }
      const { messages } = await graph.invoke(null, thread(id));
      expect(done.sort()).toEqual(["gift 4", "note 3", "refund 1"]);
      const answers = messages.slice(1) as ToolMessage[];
      expect(answers.map(({ tool_call_id }) => tool_call_id)).toEqual(["a", "b", "c", "d"]);
      expect(answers[1]).toMatchObject({ status: "error" });
      expect(answers[1]?.content).toContain("rejected by ann: keep it");
    }
  }, 60_000);

  it("APP-01: a changed call is asked about again; a changed call id is not", async () => {
    const ledger = db.openLedger();
    const done: string[] = [];
    let call = { name: "refund", args: { n: 50 }, id: "first" };
    const graph = agent(ledger, () => [call], done);
    await graph.invoke({ messages: [] }, thread("changed"));
    const asked = await one(ledger, "changed");
    await decide(ledger, { approvalId: asked.id, by: "ann", decision: { status: "approved" } });
    call = { name: "refund", args: { n: 100 }, id: "first" };
    await graph.invoke(null, thread("changed"));
    expect(done).toEqual([]);
    expect(await one(ledger, "changed")).toMatchObject({ args: { n: 100 } });
    call = { name: "refund", args: { n: 50 }, id: "another" };
    await graph.invoke(null, thread("changed"));
    // The decision on 50 was closed when the same call asked for 100, and that one when the model called under another id.
    const open = await pendingOf(ledger, "changed");
    expect(open.map(({ args }) => args)).toEqual([{ n: 50 }]);
    await decide(ledger, { approvalId: open[0]?.id ?? "", by: "ann", decision: { status: "approved" } });
    call = { name: "refund", args: { n: 50 }, id: "a third" };
    await graph.invoke(null, thread("changed"));
    expect(done).toEqual(["refund 50"]);
    expect(await pendingOf(ledger, "changed")).toEqual([]);
  });

  it("take an edit that fits their schema, and refuse one that does not", async () => {
    const ledger = db.openLedger();
    const done: string[] = [];
    const graph = agent(ledger, () => [{ name: "refund", args: { n: 50 }, id: "a" }], done);
    await graph.invoke({ messages: [] }, thread("edited"));
    const { id } = await one(ledger, "edited");
    const edit = (args: unknown) => decide(ledger, { approvalId: id, by: "ann", decision: { status: "edited", args } });
    await expect(edit({ n: "many" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(edit({})).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(edit({ n: Number.NaN })).rejects.toThrow(/NaN/);
    expect((await edit({ n: 7 })).result).toBe("applied");
    await graph.invoke(null, thread("edited"));
    expect(done).toEqual(["refund 7"]);
  });
});

describe("an approval that was used", () => {
  it("is not taken by a call under another id, nor by an equal call that comes first the next time", async () => {
    const ledger = db.openLedger();
    const done: string[] = [];
    let ids = ["a"];
    const graph = agent(ledger, () => ids.map((id) => ({ name: "refund", args: { n: 50 }, id })), done);
    await graph.invoke({ messages: [] }, thread("used"));
    await decide(ledger, { approvalId: (await one(ledger, "used")).id, by: "ann", decision: { status: "approved" } });
    ids = ["a", "b"];
    await graph.invoke(null, thread("used"));
    expect(done).toEqual(["refund 50"]);
    ids = ["b", "c"];
    await graph.invoke(null, thread("used"));
    expect(done).toEqual(["refund 50"]);
    expect((await pendingOf(ledger, "used")).map(({ toolCallId }) => toolCallId)).toEqual(["b", "c"]);
  });

  it("no longer counts at its place once that has asked for something else", async () => {
    const ledger = db.openLedger();
    const paid: number[] = [];
    let amount = 50;
    let fails = true;
    const graph = nodeGraph(ledger, async (_state, runtime) => {
      const { allowed } = await requestApproval(runtime, { action: "pay", args: { amount } });
      if (fails) throw new Error("before the effect");
      if (allowed) paid.push(amount);
      return { log: ["end"] };
    });
    await graph.invoke({ log: [] }, thread("past"));
    const say = async (status: "approved" | "rejected") =>
      decide(ledger, { approvalId: (await one(ledger, "past")).id, by: "ann", decision: { status } });
    await say("approved");
    await expect(graph.invoke(null, thread("past"))).rejects.toThrow("before the effect");
    amount = 100;
    fails = false;
    await graph.invoke(null, thread("past"));
    amount = 50;
    await graph.invoke(null, thread("past"));
    expect(paid).toEqual([]);
    expect((await pendingOf(ledger, "past")).map(({ args }) => args)).toEqual([{ amount: 50 }]);
  });

  it("is executed with what was shown, whatever becomes of the call's own object, and a schema is applied once", async () => {
    const ledger = db.openLedger();
    const paid: unknown[] = [];
    const cents = durableTool(
      tool(async ({ euros }: { euros: number }) => String(paid.push(euros)), {
        name: "pay",
        description: "pays",
        schema: z.object({ euros: z.number().transform((given) => given * 100) }),
      }),
      { version: "1.0.0", effect: "write", approval: {} },
    );
    const args = { euros: 5 };
    const builder = new StateGraph(MessagesAnnotation)
      .addNode("act", async (_state, config) => {
        const call = { name: "pay", args, id: "a", type: "tool_call" as const };
        return new ToolNode([cents]).invoke({ messages: [new AIMessage({ content: "", tool_calls: [call] })] }, config);
      })
      .addEdge(START, "act")
      .addEdge("act", END);
    const graph = durableGraph(builder, { ledger });
    await graph.invoke({ messages: [] }, thread("cents"));
    const asked = await one(ledger, "cents");
    expect(asked.args).toEqual({ euros: 5 });
    await decide(ledger, { approvalId: asked.id, by: "ann", decision: { status: "edited", args: { euros: 6 } } });
    await graph.invoke(null, thread("cents"));
    expect(paid).toEqual([600]);
  });
});

describe("in production", () => {
  it("a resume value of nobody who is known decides nothing, also where anybody known may", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 5, log: [] }, thread("production"));
    vi.stubEnv("NODE_ENV", "production");
    try {
      const forged = { configurable: { thread_id: "production", langgraph_auth_user: { identity: "boss" } } };
      for (const config of [thread("production"), forged]) {
        await expect(graph.invoke(new Command({ resume: true }), config)).rejects.toMatchObject({
          code: "DECISION_REFUSED",
        });
      }
      await expect(advanceClock(ledger, 1)).rejects.toThrow(/production/);
    } finally {
      vi.unstubAllEnvs();
    }
    expect((await one(ledger, "production")).status).toBe("pending");
    expect(paid).toEqual([]);
    await expect(advanceClock(ledger, -1)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe("a cancel", () => {
  it("closes what was asked, and what was allowed but not used: lifted, the thread asks again", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger);
    await graph.invoke({ amount: 5, log: [] }, thread("cancelled"));
    await decide(ledger, {
      approvalId: (await one(ledger, "cancelled")).id,
      by: "bob",
      decision: { status: "approved" },
    });
    await cancelRun(ledger, { threadId: "cancelled", by: "ann", reason: "do not pay" });
    expect(await statusesOf(ledger, "cancelled")).toEqual(["cancelled"]);
    await redrive(ledger, { threadId: "cancelled", by: "ann" });
    await graph.invoke(null, thread("cancelled"));
    expect(paid).toEqual([]);
    expect(await statusesOf(ledger, "cancelled")).toEqual(["cancelled", "pending"]);
  });
});

describe("a resume value that is refused", () => {
  it("leaves the thread as it was, with the wake of a decision that was made meanwhile", async () => {
    const ledger = db.openLedger();
    const { graph } = payment(ledger);
    await graph.invoke({ amount: 1, log: [] }, thread("kept"));
    const { id } = await one(ledger, "kept");
    await decide(ledger, { approvalId: id, by: "ann", decision: { status: "rejected" } });
    await expect(graph.invoke(new Command({ resume: { [id]: "approve" } }), thread("kept"))).rejects.toThrow(/by ann/);
    await expect(graph.invoke(new Command({ resume: true, update: { amount: 2 } }), thread("kept"))).rejects.toThrow();
    expect(await db.sql("select state from longhaul.threads where thread_id = 'kept'")).toEqual([{ state: "waiting" }]);
    expect(await db.sql("select 1 from longhaul.wakes where thread_id = 'kept'")).toHaveLength(1);
  });

  it("is refused as a whole: one answer that cannot be read decides nothing", async () => {
    const ledger = db.openLedger();
    const graph = nodeGraph(ledger, async (_state, runtime) => {
      const ask = (action: string) => requestApproval(runtime, { action, args: {} });
      await Promise.all([ask("first"), ask("second")]);
      return { log: [] };
    });
    await graph.invoke({ log: [] }, thread("whole"));
    const [first, second] = await pendingOf(ledger, "whole");
    const resume = { [first?.id ?? ""]: "approve", [second?.id ?? ""]: "perhaps" };
    await expect(graph.invoke(new Command({ resume }), thread("whole"))).rejects.toThrow(/Nothing was decided/);
    expect(await statusesOf(ledger, "whole")).toEqual(["pending", "pending"]);
    const both = { approved: true, type: "reject" };
    const odd = { [first?.id ?? ""]: both };
    await expect(graph.invoke(new Command({ resume: odd }), thread("whole"))).rejects.toThrow(/Nothing was decided/);
  });
});

describe("names of people", () => {
  it.each(["role:boss", " agent:x", "ROLE:boss", "a\ngent:x", "ann ", "system"])("refuse %j", async (by) => {
    const ledger = db.openLedger();
    const { graph } = payment(ledger, { approvers: ["role:boss"] });
    await graph.invoke({ amount: 1, log: [] }, thread(`name ${by}`));
    const { id } = await one(ledger, `name ${by}`);
    await expect(decide(ledger, { approvalId: id, by, decision: { status: "approved" } })).rejects.toThrow();
    expect((await one(ledger, `name ${by}`)).status).toBe("pending");
  });
});

describe("longhaul approvals", () => {
  it("lists, shows, decides, and says who was first", async () => {
    const ledger = db.openLedger();
    const { graph, paid } = payment(ledger, { approvers: ["ann"], timeoutMs: 3_600_000 });
    await graph.invoke({ amount: 4, log: [] }, thread("by hand"));
    const { id } = await one(ledger, "by hand");
    const run = async (...args: string[]) => {
      const { code, lines } = await longhaul(db.url, "approvals", ...args);
      return { code, ...(lines[0] as Record<string, unknown>) };
    };
    expect(await run("list", "--thread", "by hand")).toMatchObject({ id, action: "pay", status: "pending" });
    expect(await run("approve", id, "--by", "eve")).toMatchObject({ code: 1, error: "DECISION_REFUSED" });
    expect(await run("extend", id, "--by", "ann", "--hours", "2")).toMatchObject({ code: 0, id });
    expect((await run("edit", id, "--by", "ann", "--args", "{")).code).toBe(2);
    expect(await run("approve", id, "--by", "ann", "--comment", "fine")).toMatchObject({ code: 0, result: "applied" });
    const again = await run("reject", id, "--by", "ann");
    expect(again).toMatchObject({ code: 3, result: "already-decided", decidedBy: "ann" });
    const { history } = (await run("show", id)) as unknown as { history: { kind: string }[] };
    expect(history.map(({ kind }) => kind)).toEqual(["requested", "refused", "extended", "approved"]);
    await graph.invoke(null, thread("by hand"));
    expect(paid).toEqual([4]);
  }, 60_000);
});
