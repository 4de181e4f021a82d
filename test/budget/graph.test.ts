// Budgets of a graph: every model and tool call is held against them, wherever it is made, and a replay takes nothing.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type Budget,
  type BudgetView,
  DatabaseError,
  degradeLadder,
  drainReason,
  durableGraph,
  durableModel,
  durableNode,
  durableTool,
  type Ledger,
  openLedger,
  raiseBudget,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { listeningPool } from "../support/pools.js";
import { longhaul, runScript } from "../support/script.js";

type Chat = ReturnType<Awaited<ReturnType<typeof modelServer>>["chat"]>;
let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
});

/** What one call of the stand-in takes: 1000 tokens in, 500 out, at the price of gpt-4.1-mini. */
const CALL = { tokens: 1500, nanoUsd: 1_200_000n };
const capped = () => models.chat({ maxTokens: 500 });

const spentOf = async (threadId: string) => {
  const [row] = await db.sql<Record<"usd" | "tokens" | "calls" | "tools" | "held", string>>(
    `select spent_nano_usd as usd, spent_tokens as tokens, spent_model_calls as calls, spent_tool_calls as tools,
      reserved_nano_usd + reserved_tokens + reserved_model_calls + reserved_tool_calls as held
     from longhaul.budgets where scope = $1`,
    [threadId],
  );
  return { usd: row?.usd, tokens: row?.tokens, calls: row?.calls, tools: row?.tools, held: row?.held };
};

/** A graph of one node that asks the model the questions one after the other. */
function asking(model: Chat, questions: number, budget: Budget, ledger: Ledger = db.openLedger()) {
  return durableGraph(
    new StateGraph(State)
      .addNode(
        "ask",
        durableNode(State, async () => {
          const log: string[] = [];
          for (let i = 0; i < questions; i++) log.push((await model.invoke(`Question ${i}?`)).text);
          return { log };
        }),
      )
      .addEdge(START, "ask")
      .addEdge("ask", END),
    { ledger, budget },
  );
}

describe("a limit on model calls", () => {
  it("pauses at the limit with what is left to do, and goes on when it is raised, asking nothing twice", async () => {
    const id = "pause";
    const before = models.requests();
    const graph = asking(durableModel(capped()), 5, { modelCalls: 3 });
    const paused = await graph.invoke({ log: [] }, thread(id));
    expect(paused).toMatchObject({
      __interrupt__: [
        {
          value: {
            kind: "BUDGET_EXCEEDED",
            scope: id,
            limit: "modelCalls",
            allowed: "3",
            spent: "3",
            message: expect.stringContaining(`longhaul budget raise ${id} --model-calls`),
          },
        },
      ],
    });
    expect(models.requests() - before).toBe(3);
    // Resumed without more, it asks again; no resume value is taken for an answer.
    expect(await graph.invoke(new Command({ resume: "yes" }), thread(id))).toHaveProperty("__interrupt__");
    expect(models.requests() - before).toBe(3);
    const raised = await longhaul(
      db.url,
      "budget",
      "raise",
      id,
      "--model-calls",
      "2",
      "--by",
      "ann",
      "--reason",
      "more",
    );
    expect(raised).toMatchObject({ code: 0, lines: [{ allowed: { modelCalls: 5 }, spent: { modelCalls: 3 } }] });
    expect((await graph.invoke(null, thread(id))).log).toHaveLength(5);
    expect(models.requests() - before).toBe(5);
    expect(await spentOf(id)).toMatchObject({ calls: "5", tokens: String(5 * CALL.tokens), held: "0" });
    expect(await db.sql("select by_whom, reason, model_calls from longhaul.budget_changes")).toEqual([
      { by_whom: "ann", reason: "more", model_calls: "2" },
    ]);
  });

  it("throws at the limit where the caller wants an error", async () => {
    const graph = asking(durableModel(capped()), 2, { modelCalls: 1, onExceeded: "fail" });
    await expect(graph.invoke({ log: [] }, thread("fail"))).rejects.toMatchObject({
      code: "BUDGET_EXCEEDED",
      status: 402,
    });
    expect((await spentOf("fail")).calls).toBe("1");
  });

  it("of 0 blocks the first call", async () => {
    const before = models.requests();
    const graph = asking(durableModel(capped()), 1, { modelCalls: 0 });
    expect(await graph.invoke({ log: [] }, thread("zero"))).toHaveProperty("__interrupt__");
    expect(models.requests()).toBe(before);
  });

  it("holds for a model that is no durable one, and across processes", async () => {
    const before = models.requests();
    const graph = asking(capped(), 3, { modelCalls: 2 });
    expect(await graph.invoke({ log: [] }, thread("plain"))).toMatchObject({
      __interrupt__: [{ value: { limit: "modelCalls", spent: "2" } }],
    });
    expect(models.requests() - before).toBe(2);
    const later = asking(capped(), 3, { modelCalls: 2 }, db.openLedger());
    expect(await later.invoke(null, thread("plain"))).toHaveProperty("__interrupt__");
    expect(models.requests() - before).toBe(2);
    expect(await spentOf("plain")).toMatchObject({ calls: "2", held: "0" });
  });

  it("is not got past by code that catches the pause", async () => {
    const model = capped();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", async () => ({ log: [await model.invoke("And?").then(String, () => "caught")] }))
        .addNode("after", async () => ({ log: ["after"] }))
        .addEdge(START, "ask")
        .addEdge("ask", "after")
        .addEdge("after", END),
      { ledger: db.openLedger(), budget: { modelCalls: 0 } },
    );
    expect(await graph.invoke({ log: [] }, thread("caught"))).toMatchObject({ log: [], __interrupt__: [{}] });
  });

  it("is never passed by calls at once: twelve callers, five calls", async () => {
    const before = models.requests();
    const model = durableModel(capped());
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "ask",
          durableNode(State, async () => ({
            log: await Promise.all(Array.from({ length: 12 }, (_, i) => model.invoke(`At once ${i}?`).then(String))),
          })),
        )
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger: db.openLedger(), budget: { modelCalls: 5 } },
    );
    expect(await graph.invoke({ log: [] }, thread("at once"))).toHaveProperty("__interrupt__");
    expect(models.requests() - before).toBe(5);
    expect(await spentOf("at once")).toMatchObject({ calls: "5", held: "0" });
  });

  it("is never passed by three processes with twelve callers each", async () => {
    const graph = asking(durableModel(capped()), 0, { modelCalls: 20 });
    await graph.invoke({ log: [] }, thread("shared"));
    const ends = await Promise.all(
      [1, 2, 3].map((n) => runScript("test/budget/spender.child.ts", [db.url, `spender-${n}`, "shared", "12"])),
    );
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(ends.reduce((sum, { lines }) => sum + Number(lines[0]?.["admitted"]), 0)).toBe(20);
    expect(await spentOf("shared")).toMatchObject({ calls: "20", held: "0" });
  });
});

describe("a limit in dollars", () => {
  it("is exact to the nano-dollar, and is not passed where the output has a cap", async () => {
    const before = models.requests();
    const graph = asking(durableModel(capped()), 20, { usd: 0.005 });
    expect(await graph.invoke({ log: [] }, thread("usd"))).toMatchObject({
      __interrupt__: [{ value: { limit: "usd" } }],
    });
    const calls = models.requests() - before;
    const { usd, held } = await spentOf("usd");
    expect(BigInt(usd ?? "0")).toBe(BigInt(calls) * CALL.nanoUsd);
    expect(BigInt(usd ?? "0")).toBeLessThanOrEqual(5_000_000n);
    expect(held).toBe("0");
    const [recorded] = await db.sql(
      "select sum(cost_nano_usd)::text as usd from longhaul.steps where thread_id = 'usd'",
    );
    expect(recorded).toEqual({ usd });
  });

  it("BUD-03: refuses a model whose price nobody knows, and names the one that was meant", async () => {
    const prices = { "demo-large-4-1": { inputUsdPerMillion: 1, outputUsdPerMillion: 2 } };
    const before = models.requests();
    const graph = asking(
      durableModel(models.chat({ model: "demo-large-4.1" })),
      1,
      { usd: 0.02 },
      db.openLedger({ prices }),
    );
    await expect(graph.invoke({ log: [] }, thread("bud-03"))).rejects.toMatchObject({
      code: "UNKNOWN_PRICE",
      message: expect.stringContaining('"demo-large-4-1"'),
    });
    expect(models.requests()).toBe(before);
    expect(await spentOf("bud-03")).toMatchObject({ usd: "0", calls: "0", held: "0" });
  });

  it("TOK-04: ten costs of 0.1 dollars reach a cap of 1 exactly", async () => {
    const prices = { "dear-model": { inputUsdPerMillion: 100, outputUsdPerMillion: 0 } };
    const model = durableModel(models.chat({ model: "dear-model", maxTokens: 500 }));
    const graph = asking(model, 11, { usd: 1 }, db.openLedger({ prices }));
    expect(await graph.invoke({ log: [] }, thread("tok-04"))).toMatchObject({
      __interrupt__: [{ value: { spent: "1.0000", allowed: "1.0000" } }],
    });
    expect((await spentOf("tok-04")).usd).toBe("1000000000");
  });
});

describe("a limit on tool calls", () => {
  const described = { name: "search", description: "Searches.", schema: z.object({}) };
  it.each(["durable", "plain"] as const)("pauses before a %s tool, and the model hears of no error", async (kind) => {
    let ran = 0;
    const plain = tool(async () => `found ${++ran}`, described);
    const search = kind === "plain" ? plain : durableTool(plain, { version: "1.0.0", effect: "read" });
    const heard: string[] = [];
    const model = async ({ messages }: typeof MessagesAnnotation.State) => {
      heard.push(messages.at(-1)?.text ?? "");
      if (heard.length > 3) return { messages: [new AIMessage("done")] };
      const call = { type: "tool_call" as const, id: `call_${heard.length}`, name: "search", args: {} };
      return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
    };
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("model", model)
        .addNode("tools", new ToolNode([search]))
        .addEdge(START, "model")
        .addConditionalEdges("model", ({ messages }) => (messages.at(-1)?.text === "done" ? END : "tools"), [
          "tools",
          END,
        ])
        .addEdge("tools", "model"),
      { ledger: db.openLedger(), budget: { toolCalls: 2, onExceeded: "fail" } },
    );
    const id = `tools ${kind}`;
    const paused = await graph.invoke({ messages: [new HumanMessage("go")] }, thread(id));
    expect(paused).toMatchObject({ __interrupt__: [{ value: { limit: "toolCalls" } }] });
    expect(heard).toEqual(["go", "found 1", "found 2"]);
    await raiseBudget(db.openLedger(), { threadId: id, toolCalls: 1, by: "ann" });
    const done = await graph.invoke(null, thread(id));
    expect(done.messages.at(-1)?.text).toBe("done");
    expect(heard).toEqual(["go", "found 1", "found 2", "found 3"]);
    expect(await spentOf(id)).toMatchObject({ tools: "3", held: "0" });
  });
});

it("a run that dies between a receipt and its settlement: the next one settles by the receipt, and pays for no replay", async () => {
  const pool = new pg.Pool({ connectionString: db.url });
  const dying = openLedger({
    pool: listeningPool(pool, async (name, send) => {
      if (name === "lh_budget_settle") throw new DatabaseError("PostgreSQL cannot be reached.");
      return send();
    }),
  });
  const before = models.requests();
  const cut = await asking(durableModel(capped()), 2, { usd: 1 }, dying)
    .invoke({ log: [] }, thread("dying"))
    .catch(drainReason);
  expect(cut).toMatchObject({ kind: "unrecorded" });
  expect((await spentOf("dying")).held).not.toBe("0");
  const done = await asking(durableModel(capped()), 2, { usd: 1 }).invoke(null, thread("dying"));
  expect(done.log).toHaveLength(2);
  expect(models.requests() - before).toBe(2);
  expect(await spentOf("dying")).toEqual({
    usd: String(2n * CALL.nanoUsd),
    tokens: "3000",
    calls: "2",
    tools: "0",
    held: "0",
  });
  await pool.end();
});

describe("BUD-02: a graph that runs on a thread of its own inside another", () => {
  it.each([
    ["recorded", "bud-02", () => durableModel(capped())],
    ["plain", "bud-02 plain", () => capped()],
  ] as const)(
    "BUD-02: spends from its parent too, each %s call once, and stops at the parent's limit",
    async (_kind, id, make) => {
      const ledger = db.openLedger();
      const before = models.requests();
      const child = asking(make(), 4, { modelCalls: 100 }, ledger);
      const parent = durableGraph(
        new StateGraph(State)
          .addNode(
            "children",
            durableNode(State, async () => {
              const asked: string[] = [];
              for (const name of ["one", "two"]) {
                const state = await child.invoke({ log: [] }, thread(`${id} ${name}`));
                asked.push("__interrupt__" in state ? `${name} stopped` : `${name} done`);
              }
              return { log: asked };
            }),
          )
          .addEdge(START, "children")
          .addEdge("children", END),
        { ledger, budget: { modelCalls: 6 } },
      );
      const { log } = await parent.invoke({ log: [] }, thread(id));
      expect(log).toEqual(["one done", "two stopped"]);
      expect(models.requests() - before).toBe(6);
      expect((await spentOf(id)).calls).toBe("6");
      expect((await spentOf(`${id} one`)).calls).toBe("4");
      expect((await spentOf(`${id} two`)).calls).toBe("2");
      const shown = await longhaul(db.url, "budget", "show", `${id} two`);
      expect(shown.lines).toMatchObject([{ scope: `${id} two`, parent: id, spent: { modelCalls: 2 } }]);
    },
  );
});

describe("what a node sees of its budget", () => {
  it("is what is left, and a ladder that says what to make do with", async () => {
    const ladder = degradeLadder(
      { model: "large", searches: 50 },
      { below: 0.6, use: { searches: 10 } },
      { below: 0.3, use: { model: "small" } },
    );
    const model = durableModel(capped());
    const look = ({ remainingRatio, spentNanoUsd, scope, ...budget }: BudgetView & { pick: BudgetView["pick"] }) =>
      `${scope} ${remainingRatio.toFixed(2)} ${spentNanoUsd} ${JSON.stringify(budget.pick(ladder))}`;
    const node = durableNode(State, async (_state, { budget }) => {
      const seen = look({
        ...budget,
        remainingRatio: budget.remainingRatio,
        spentNanoUsd: budget.spentNanoUsd,
        scope: budget.scope,
        pick: (l) => budget.pick(l),
      });
      await model.invoke("And?");
      return { log: [seen] };
    });
    const builder = new StateGraph(State)
      .addNode("a", node)
      .addNode("b", node)
      .addNode("c", node)
      .addNode("d", node)
      .addEdge(START, "a")
      .addEdge("a", "b")
      .addEdge("b", "c")
      .addEdge("c", "d")
      .addEdge("d", END);
    const graph = durableGraph(builder, { ledger: db.openLedger(), budget: { modelCalls: 4 } });
    const { log } = await graph.invoke({ log: [] }, thread("ladder"));
    expect(log).toEqual(
      [
        'ladder 1.00 0 {"model":"large","searches":50}',
        'ladder 0.75 0 {"model":"large","searches":50}',
        'ladder 0.50 0 {"model":"large","searches":10}',
        'ladder 0.25 0 {"model":"small","searches":10}',
      ].map((line, i) => line.replace(" 0 {", ` ${BigInt(i) * CALL.nanoUsd} {`)),
    );
  });
});

describe("limits that cannot be", () => {
  it.each<[string, unknown]>([
    ["usd", { usd: Number.NaN }],
    ["usd", { usd: -1 }],
    ["usd", { usd: "5" }],
    ["usd", { usd: Number.POSITIVE_INFINITY }],
    ["tokens", { tokens: 1.5 }],
    ["modelCalls", { modelCalls: -1 }],
    ["deadline", { deadline: "tomorrow" }],
    ["onExceeded", { onExceeded: "retry" }],
    ["calls", { calls: 5 }],
    ["budget", 5],
  ])("%s in %j are refused when the graph is made", (name, budget) => {
    const make = () =>
      durableGraph(new StateGraph(State).addNode("n", async () => ({})).addEdge(START, "n"), {
        ledger: db.openLedger(),
        budget: budget as Budget,
      });
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(name) }));
  });

  it("a raise of nothing, by nobody, or of what is not there", async () => {
    const ledger = db.openLedger();
    await expect(raiseBudget(ledger, { threadId: "nobody", usd: 1, by: "ann" })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    await expect(raiseBudget(ledger, { threadId: "pause", by: "ann" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(raiseBudget(ledger, { threadId: "pause", usd: 1, by: "" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    const bad = await longhaul(db.url, "budget", "raise", "pause", "--usd", "many");
    expect(bad).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
  });
});
