// Ways in which code around a step could make it happen twice, get lost, or take another step's result.

import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { Annotation, Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel, durableNode, durableTool, redrive, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";

let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
});

const State = Annotation.Root({ log: Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
type Fn = Parameters<StateGraph<typeof State.spec>["addNode"]>[1];
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const one = (fn: Fn) =>
  durableGraph(
    new StateGraph(State)
      .addNode("n", fn as never)
      .addEdge(START, "n" as never)
      .addEdge("n" as never, END),
    { ledger: db.openLedger() },
  );
const lost = () => Promise.reject(Object.assign(new Error("hang up"), { code: "ECONNRESET" }));
const keyOf = async (
  graph: {
    getState: (config: object) => Promise<{ tasks: readonly { interrupts: readonly { value?: unknown }[] }[] }>;
  },
  id: string,
) => {
  const value = (await graph.getState(thread(id))).tasks.flatMap((task) => task.interrupts)[0]?.value;
  return (value as { idempotencyKey: string } | undefined)?.idempotencyKey ?? "";
};

let sent: unknown[] = [];
beforeEach(() => {
  sent = [];
});
const charge = () =>
  durableTool(
    tool(
      async ({ n }: { n: number }) => {
        sent.push(n);
        return `charge ${sent.length}`;
      },
      { name: "charge", description: "charges", schema: z.object({ n: z.number() }) },
    ),
    { version: "1.0.0", effect: "write" },
  );

describe("equal calls", () => {
  it("inside two tool calls of one ToolNode are as many effects as calls", async () => {
    const inner = charge();
    const order = durableTool(
      tool(async () => [await inner.invoke({ n: 5 }), await inner.invoke({ n: 5 })].join(), {
        name: "order",
        description: "orders",
        schema: z.object({}),
      }),
      { version: "1.0.0", effect: "none" },
    );
    const calls = ["a", "b"].map((id) => ({ id, name: "order", args: {}, type: "tool_call" as const }));
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("tools", new ToolNode([order]))
        .addEdge(START, "tools")
        .addEdge("tools", END),
      { ledger: db.openLedger() },
    );
    const { messages } = await graph.invoke(
      { messages: [new AIMessage({ content: "", tool_calls: calls })] },
      thread("order"),
    );
    expect(sent).toEqual([5, 5, 5, 5]);
    expect(new Set(messages.slice(1).map((m) => m.content)).size).toBe(2);
  });

  it("inside a lambda are as many effects as calls", async () => {
    const inner = charge();
    const lambda = RunnableLambda.from(async () => inner.invoke({ n: 1 }));
    await one(async () => ({ log: [await lambda.invoke({}), await lambda.invoke({})] })).invoke(
      { log: [] },
      thread("lambda"),
    );
    expect(sent).toEqual([1, 1]);
  });

  it("in a chain with the node's name are as many model calls as calls", async () => {
    const model = durableModel(models.chat());
    const vote = RunnableLambda.from(async (q: string) => (await model.invoke(q)).id).withConfig({ runName: "n" });
    const before = models.requests();
    await one(async () => ({ log: [await vote.invoke("v"), await vote.invoke("v"), await vote.invoke("v")] })).invoke(
      { log: [] },
      thread("vote"),
    );
    expect(models.requests() - before).toBe(3);
  });

  it("of one key with other inputs, at once, are not joined: the second asks", async () => {
    const graph = one(
      durableNode(State, async (_s, { step }) => {
        const mail = (to: string) => step.write("mail", { to }, async () => sent.push(to), { key: "newsletter" });
        await Promise.all([mail("ann"), mail("bob")]);
        return { log: [] };
      }) as never,
    );
    await expect(graph.invoke({ log: [] }, thread("one-key"))).rejects.toMatchObject({ code: "INPUT_CONFLICT" });
    expect(sent.length).toBeLessThanOrEqual(1);
  });
});

describe("a durable model with callbacks of its own", () => {
  const tracer = () =>
    new (class extends BaseCallbackHandler {
      name = "tracer";
    })();
  it.each<[string, (m: ReturnType<typeof models.chat>) => Promise<unknown>]>([
    ["invoke", (m) => m.invoke("q", { callbacks: [tracer()] })],
    ["invoke with none", (m) => m.invoke("q", { callbacks: [] })],
    ["withConfig", (m) => m.withConfig({ callbacks: [tracer()] }).invoke("q")],
    [
      "stream",
      async (m) => {
        for await (const _ of await m.stream("q", { callbacks: [tracer()] }));
      },
    ],
    ["a lambda around it", (m) => RunnableLambda.from(() => m.invoke("q")).invoke({}, { callbacks: [tracer()] })],
  ])("is recorded: %s", async (name, call) => {
    const model = durableModel(models.chat());
    let die = true;
    const graph = one(async () => {
      await call(model);
      if (die) throw new Error("dies");
      return { log: [] };
    });
    const before = models.requests();
    await expect(graph.invoke({ log: [] }, thread(`callbacks ${name}`))).rejects.toThrow("dies");
    die = false;
    await graph.invoke(null, thread(`callbacks ${name}`));
    expect(models.requests() - before).toBe(1);
  });
});

describe("a failure that is hard to record", () => {
  it.each([
    ["NUL", "upstream said \0 bye"],
    ["a lone surrogate", "half \ud800"],
    ["a character across the cut", `${"x".repeat(1999)}😀😀`],
  ])("pauses all the same: %s", async (name, message) => {
    const failing = durableTool(
      tool(
        async () => {
          sent.push(name);
          throw new Error(message);
        },
        { name: "pay", description: "pays", schema: z.object({ amount: z.number() }) },
      ),
      { version: "1.0.0", effect: "write" },
    );
    const model = durableModel(models.chat());
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("think", async (s) => ({ messages: [await model.bindTools([failing]).invoke(s.messages)] }))
        .addNode("tools", new ToolNode([failing]))
        .addEdge(START, "think")
        .addEdge("think", "tools")
        .addEdge("tools", "think"),
      { ledger: db.openLedger() },
    );
    await graph.invoke({ messages: [new HumanMessage("pay now")] }, thread(`odd ${name}`));
    expect(sent).toEqual([name]);
    expect(await keyOf(graph, `odd ${name}`)).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("a pause", () => {
  it("is not lost in a Promise.all whose other steps are still open, nor in a catch", async () => {
    for (const wrap of ["all", "catch", "allSettled"] as const) {
      const graph = one(
        durableNode(State, async (_s, { step }) => {
          const inDoubt = () => step.write("a", 1, lost);
          const other = () => step.write("b", 2, async () => sent.push("b"));
          if (wrap === "all") await Promise.all([inDoubt(), other()]);
          else if (wrap === "allSettled") await Promise.allSettled([inDoubt()]);
          else await inDoubt().catch(() => other());
          return { log: ["done"] };
        }) as never,
      );
      expect((await graph.invoke({ log: [] }, thread(`pause ${wrap}`))).log).toEqual([]);
      expect(await keyOf(graph, `pause ${wrap}`)).not.toBe("");
    }
    expect(sent).toEqual(["b"]);
  });

  it("takes no resume value with it to a question that was not asked yet", async () => {
    const graph = one(
      durableNode(State, async (_s, { step }) => {
        await step.write("pay", 1, lost);
        return { log: [interrupt("really delete everything?")] };
      }) as never,
    );
    await graph.invoke({ log: [] }, thread("stray"));
    await graph.invoke(new Command({ resume: "yes" }), thread("stray"));
    await settle(db.openLedger(), {
      idempotencyKey: await keyOf(graph, "stray"),
      by: "ann",
      outcome: "happened",
      receipt: "r",
    });
    await graph.invoke(null, thread("stray"));
    const [asked] = (await graph.getState(thread("stray"))).tasks.flatMap((task) => task.interrupts);
    expect(asked?.value).toBe("really delete everything?");
    expect((await graph.invoke(new Command({ resume: "no" }), thread("stray"))).log).toEqual(["no"]);
  });
});

describe("a write that keeps failing", () => {
  it("after sending is tried again up to its cap, however often the lookup says that it did not happen", async () => {
    const graph = one(
      durableNode(State, async (_s, { step }) => {
        const down = () => {
          sent.push(1);
          return Promise.reject(Object.assign(new Error("oops"), { status: 500 }));
        };
        const options = {
          settleMs: 1,
          retry: { failures: 3 },
          lookup: async () => ({ outcome: "did-not-happen" as const }),
        };
        return { log: [await step.write("post", 1, down, options)] };
      }) as never,
    );
    await expect(graph.invoke({ log: [] }, thread("cap"))).rejects.toMatchObject({ code: "STEP_FAILED", status: 500 });
    expect(sent).toHaveLength(3);
  });

  it("and was written off is not sent again by a redrive", async () => {
    const ledger = db.openLedger();
    const graph = one(
      durableNode(State, async (_s, { step }) => ({
        log: [
          await step.write("pay", 1, () => {
            sent.push(1);
            return lost();
          }),
        ],
      })) as never,
    );
    await graph.invoke({ log: [] }, thread("written-off"));
    await settle(ledger, {
      idempotencyKey: await keyOf(graph, "written-off"),
      by: "ann",
      outcome: "write-off",
      reason: "gave up",
    });
    await expect(graph.invoke(null, thread("written-off"))).rejects.toMatchObject({ errorCode: "WRITTEN_OFF" });
    expect(await redrive(ledger, { threadId: "written-off", by: "ann" })).toEqual([]);
    expect(sent).toEqual([1]);
  });

  it("has a lookup that throws, hangs or answers nonsense asked again, and the process goes on", async () => {
    const answers = [
      () => {
        throw new Error("not ready");
      },
      async () => undefined,
      async () => ({ outcome: "several" }),
      async () => ({ outcome: "happened", receipt: "r1" }),
    ];
    const graph = one(
      durableNode(State, async (_s, { step }) => {
        const lookup = () => (answers.shift() ?? (() => undefined))();
        return { log: [await step.write("pay", 1, lost, { settleMs: 1, lookup: lookup as never })] };
      }) as never,
    );
    const running = graph.invoke({ log: [] }, thread("nonsense"));
    const state = async () =>
      (await db.sql<{ lookups: number }>("select lookups from longhaul.steps where thread_id = 'nonsense'"))[0]
        ?.lookups ?? 0;
    for (let n = 1; n <= 3; n++) {
      await expect.poll(state, { timeout: 30_000 }).toBe(n);
      await db.advance(2 ** n * 600);
    }
    expect((await running).log).toEqual(["r1"]);
  });
});

describe("options", () => {
  it("that are misspelt, unknown or beyond what a timer carries are refused by name", async () => {
    const graph = one(
      durableNode(State, async (_s, { step }) => ({
        log: [await step.read("x", 1, async () => 1, { timeout: 5 } as never)],
      })) as never,
    );
    await expect(graph.invoke({ log: [] }, thread("options"))).rejects.toThrow(/no option `timeout`/);
    expect(() => db.openLedger({ shcema: "x" } as never)).toThrow(/no option `shcema`/);
    expect(() => db.openLedger({ leaseMs: 2 ** 31 })).toThrow(/24 days/);
    expect(() => durableTool(charge(), { version: "1.0.0", effect: "write" })).toThrow(/durable already/);
    const plain = tool(async () => "x", { name: "x", description: "x", schema: z.object({}) });
    expect(() => durableTool(plain, { version: "1.0.0", effect: "write", onUnknown: "throw" })).toThrow(/onUnknown/);
  });

  it("null for a thread that never began says that it needs its input", async () => {
    await expect(one(async () => ({ log: [] })).invoke(null, thread("never began"))).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });
});
