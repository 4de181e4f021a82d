import { Annotation, Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason, durable, durableGraph, durableNode, operation, redrive, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({
  n: Annotation<number>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** A world that counts what reaches it. */
function world() {
  const calls: string[] = [];
  return {
    calls,
    call: async (name: string) => {
      calls.push(name);
      return name;
    },
  };
}

describe("a durable graph", () => {
  it("returns recorded steps instead of asking the world again when a later node failed", async () => {
    const w = world();
    let fail = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (s, { step }) => ({
            log: [await step.read("page", { n: s.n }, () => w.call("page"))],
          })),
        )
        .addNode(
          "pay",
          durableNode(State, async (_s, { step }) => {
            const receipt = await step.write("pay", { amount: 10 }, ({ idempotencyKey }) =>
              w.call(`pay ${idempotencyKey.length}`),
            );
            if (fail) throw new Error("the node dies after its write");
            return { log: [receipt] };
          }),
        )
        .addEdge(START, "a")
        .addEdge("a", "pay")
        .addEdge("pay", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ n: 1 }, thread("t1"))).rejects.toThrow("the node dies after its write");
    fail = false;
    const result = await graph.invoke(null, thread("t1"));
    expect(result.log).toEqual(["page", "pay 64"]);
    expect(w.calls).toEqual(["page", "pay 64"]);
  });

  it("keeps a Command's update and goto, on the first run and on replay", async () => {
    let fail = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "route",
          durableNode(State, async (s, { step }) => {
            const x = await step.read("x", s.n, async () => 5);
            if (fail) throw new Error("once");
            return new Command({ update: { log: [`x${x}`] }, goto: "big" });
          }),
          { ends: ["big", "small"] },
        )
        .addNode("big", async () => ({ log: ["big"] }))
        .addNode("small", async () => ({ log: ["small"] }))
        .addEdge(START, "route")
        .addEdge("big", END)
        .addEdge("small", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ n: 1 }, thread("cmd"))).rejects.toThrow("once");
    fail = false;
    expect((await graph.invoke(null, thread("cmd"))).log).toEqual(["x5", "big"]);
  });

  it("gives every Send branch, loop turn and subgraph its own keys", async () => {
    const w = world();
    const keys = new Set<string>();
    const sub = new StateGraph(State)
      .addNode(
        "inner",
        durableNode(State, async (s, { step }) => ({
          log: [
            await step.write("send", { n: s.n }, ({ idempotencyKey }) => {
              keys.add(idempotencyKey);
              return w.call(`inner${s.n}`);
            }),
          ],
        })),
      )
      .addEdge(START, "inner")
      .addEdge("inner", END)
      .compile();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("fan", async () => ({ log: [] }))
        .addNode("branch", async (s) => ({ log: (await sub.invoke(s)).log }))
        .addNode("loop", async (s, runtime) => {
          const { step } = durable(runtime);
          await step.write("tick", { same: true }, ({ idempotencyKey }) => {
            keys.add(idempotencyKey);
            return w.call("tick");
          });
          return { n: (s.n ?? 0) + 1 };
        })
        .addEdge(START, "fan")
        .addConditionalEdges("fan", () => [1, 2, 3].map((n) => new Send("branch", { n, log: [] })), ["branch"])
        .addEdge("branch", "loop")
        .addConditionalEdges("loop", (s) => (s.n < 3 ? "loop" : END), ["loop", END]),
      { ledger: db.openLedger() },
    );
    await graph.invoke({ n: 0 }, thread("sends"));
    expect(w.calls.filter((c) => c === "tick")).toHaveLength(3);
    expect(keys.size).toBe(6);
  });

  it("ends a second run on a live thread before any node, as drained", async () => {
    const w = world();
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const make = () =>
      durableGraph(
        new StateGraph(State)
          .addNode("a", async () => {
            await w.call("node");
            await gate;
            return { n: 2 };
          })
          .addEdge(START, "a")
          .addEdge("a", END),
        { ledger: db.openLedger() },
      );
    const first = make().invoke({ n: 1 }, thread("busy"));
    await expect.poll(() => w.calls.length).toBe(1);
    const error = await make()
      .invoke({ n: 1 }, thread("busy"))
      .catch((e: unknown) => e);
    expect(drainReason(error)).toMatchObject({ kind: "busy", threadId: "busy" });
    await expect(make().updateState(thread("busy"), { n: 9 })).rejects.toMatchObject({
      code: "THREAD_BUSY",
      status: 409,
    });
    release();
    expect((await first).n).toBe(2);
    expect(w.calls).toEqual(["node"]);
    await make().updateState(thread("busy"), { n: 9 });
    expect((await make().getState(thread("busy"))).values.n).toBe(9);
  });

  it("pauses a write of unknown outcome without a lookup, and goes on when a person has settled it", async () => {
    const w = world();
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (_s, { step }) => ({
            log: [
              await step.write("pay", { amount: 1 }, async () => {
                await w.call("pay");
                throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
              }),
            ],
          })),
        )
        .addEdge(START, "pay")
        .addEdge("pay", END),
      { ledger },
    );
    const paused = await graph.invoke({ n: 1 }, thread("unknown"));
    expect(paused).toHaveProperty("__interrupt__");
    const state = await graph.getState(thread("unknown"));
    const question = state.tasks[0]?.interrupts[0]?.value as { kind: string; idempotencyKey: string };
    expect(question.kind).toBe("NEEDS_RECONCILIATION");
    // Asking again changes nothing, and a resume value is not an answer.
    await graph.invoke(new Command({ resume: { ok: true } }), thread("unknown"));
    expect(w.calls).toEqual(["pay"]);
    const early = await settle(ledger, {
      idempotencyKey: question.idempotencyKey,
      by: "ann",
      outcome: "did-not-happen",
    });
    expect(early.result).toBe("not-yet");
    expect(
      await settle(ledger, { idempotencyKey: question.idempotencyKey, by: "ann", outcome: "happened", receipt: "p1" }),
    ).toMatchObject({ result: "settled" });
    expect((await graph.invoke(null, thread("unknown"))).log).toEqual(["p1"]);
    expect(w.calls).toEqual(["pay"]);
  });

  it("asks the lookup before any second try, and believes a no only after the settle time", async () => {
    const w = world();
    let lost = true;
    const pay = operation({
      name: "pay",
      version: "1.0.0",
      effect: "write",
      settleMs: 300,
      run: async (_input: { amount: number }) => {
        await w.call("pay");
        if (lost) throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
        return "receipt";
      },
      lookup: async () => {
        w.calls.push("lookup");
        lost = false;
        return { outcome: "did-not-happen" };
      },
    });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(pay, { amount: 1 })] })),
        )
        .addEdge(START, "pay")
        .addEdge("pay", END),
      { ledger: db.openLedger() },
    );
    expect((await graph.invoke({ n: 1 }, thread("lookup"))).log).toEqual(["receipt"]);
    expect(w.calls[0]).toBe("pay");
    expect(w.calls.at(-1)).toBe("pay");
    expect(w.calls.filter((c) => c === "lookup").length).toBeGreaterThanOrEqual(2);
    const states = await db.sql<{ to_state: string }>(
      "select to_state from longhaul.step_events e join longhaul.steps s using (key) where s.thread_id = 'lookup' order by n",
    );
    expect(states.map((r) => r.to_state)).toContain("READY");
  });
});

describe("a step that failed for good", () => {
  it("throws what was recorded on every run, until the thread is redriven", async () => {
    const w = world();
    const ledger = db.openLedger();
    let refuse = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "pay",
          durableNode(State, async (_s, { step }) => ({
            log: [
              await step.write("pay", { amount: 1 }, async () => {
                await w.call("pay");
                if (refuse)
                  throw Object.assign(new Error("card declined"), { name: "CardError", status: 402, code: "declined" });
                return "paid";
              }),
            ],
          })),
        )
        .addEdge(START, "pay")
        .addEdge("pay", END),
      { ledger },
    );
    const failure = {
      name: "CardError",
      message: "card declined",
      errorCode: "declined",
      status: 402,
      code: "STEP_FAILED",
    };
    await expect(graph.invoke({ n: 1 }, thread("declined"))).rejects.toMatchObject(failure);
    await expect(graph.invoke(null, thread("declined"))).rejects.toMatchObject(failure);
    expect(w.calls).toEqual(["pay"]);
    refuse = false;
    expect(await redrive(ledger, { threadId: "declined", by: "ann", reason: "another card" })).toHaveLength(1);
    expect((await graph.invoke(null, thread("declined"))).log).toEqual(["paid"]);
    expect(await redrive(ledger, { threadId: "declined", by: "ann" })).toEqual([]);
    await expect(redrive(ledger, { threadId: "unheard of", by: "ann" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("a resume value", () => {
  it("is refused at a checkpoint that is not the head (G18)", async () => {
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", () => ({ log: [String(interrupt("go on?"))] }))
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger: db.openLedger() },
    );
    await graph.invoke({ n: 1 }, thread("off-head"));
    const asked = (await graph.getState(thread("off-head"))).config;
    expect((await graph.invoke(new Command({ resume: "yes" }), thread("off-head"))).log).toEqual(["yes"]);
    await expect(graph.invoke(new Command({ resume: "no" }), asked)).rejects.toMatchObject({ code: "STALE_WRITER" });
    expect((await graph.getState(thread("off-head"))).values.log).toEqual(["yes"]);
  });
});

describe("a forged configurable", () => {
  it("changes nothing: LangGraph's own entries in it are dropped from a top-level run", async () => {
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (_s, { step }) => ({ log: [await step.read("x", 1, async () => "read")] })),
        )
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger: db.openLedger() },
    );
    const forged = {
      thread_id: "forged",
      __pregel_read: {},
      __pregel_checkpointer: {},
      __pregel_scratchpad: {},
      __longhaul: { run: 1 },
    };
    expect((await graph.invoke({ n: 1 }, { configurable: forged })).log).toEqual(["read"]);
    expect((await graph.getState(thread("forged"))).values.log).toEqual(["read"]);
  });
});
