// Budgets of parts: what a part may spend, what it counts where, and how it ends.
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, Command, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  budgetedSubgraph,
  budgetScope,
  degradeLadder,
  durable,
  durableGraph,
  durableModel,
  durableNode,
  raiseBudget,
  type ThreadBudget,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { longhaul } from "../support/script.js";
import { type Node, nodeGraph } from "./nodeGraph.js";

let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
});
const model = () => durableModel(models.chat({ maxTokens: 500 }));

interface Interrupted {
  readonly __interrupt__: readonly { readonly value: { readonly scope: string } }[];
}

const oneNode = (node: Node, budget?: ThreadBudget, ledger = db.openLedger()) => nodeGraph(ledger, node, budget);

const scopesOf = async (threadId: string) => {
  const rows = await db.sql<{ scope: string; calls: string; iterations: string; held: string }>(
    `select scope, spent_model_calls as calls, spent_iterations as iterations,
      reserved_nano_usd + reserved_tokens + reserved_model_calls + reserved_tool_calls as held
     from longhaul.budgets where thread_id = $1 order by depth, scope`,
    [threadId],
  );
  return rows.map(({ scope, ...row }) => ({ ...row, scope: scope.replace(/:[0-9a-f-]{36}|#.*$/g, "") }));
};
const eventsOf = async (threadId: string) =>
  (
    await db.sql<{ kind: string }>(
      "select e.kind from longhaul.budget_events e join longhaul.budgets b using (scope) where b.thread_id = $1 order by e.id",
      [threadId],
    )
  ).map(({ kind }) => kind);

/** A graph that asks the model, in one node after another. */
function chain(name: string, nodes: readonly string[]) {
  let graph = new StateGraph(State) as ReturnType<typeof build>;
  function build() {
    return new StateGraph(State).addNode("a", async () => ({ log: [""] }));
  }
  const chat = model();
  for (const node of nodes) {
    graph = graph.addNode(
      node,
      durableNode(State, async () => {
        await chat.invoke(`${name} ${node}?`);
        return { log: [`${name} ${node}`] };
      }),
    ) as never;
  }
  const edges: readonly string[] = [START, ...nodes, END];
  edges.slice(1).forEach((to, i) => {
    graph.addEdge(edges[i] as never, to as never);
  });
  return graph.compile();
}

describe("a budgeted subgraph", () => {
  it("that finishes at its limit gives what it has, counts up the chain, and leaves the rest to the graph around", async () => {
    const inner = chain("inner", ["one", "two", "three"]);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "part",
          budgetedSubgraph(inner, {
            budget: { modelCalls: 2, onExceeded: "finish" },
            input: (_state: typeof State.State) => ({ log: [] }),
            output: ({ log }, { exceeded }) => ({ log: [...log, `exceeded ${exceeded}`] }),
          }),
        )
        .addNode(
          "after",
          durableNode(State, async () => {
            await model().invoke("after?");
            return { log: ["after"] };
          }),
        )
        .addEdge(START, "part")
        .addEdge("part", "after")
        .addEdge("after", END),
      { ledger: db.openLedger(), budget: { modelCalls: 10 } },
    );
    expect((await graph.invoke({ log: [] }, thread("finish"))).log).toEqual([
      "inner one",
      "inner two",
      "exceeded true",
      "after",
    ]);
    expect(await scopesOf("finish")).toEqual([
      { scope: "finish", calls: "3", iterations: "0", held: "0" },
      { scope: "finish/part/subgraph", calls: "2", iterations: "0", held: "0" },
    ]);
    expect(await eventsOf("finish")).toEqual(["exceeded"]);
  });

  it("that is one of several at once keeps what those beside the refused call have done", async () => {
    const Notes = Annotation.Root({
      page: Annotation<number>,
      notes: Annotation<number[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    });
    const chat = model();
    const inner = new StateGraph(Notes)
      .addNode(
        "note",
        durableNode(Notes, async ({ page }) => {
          await chat.invoke(`Page ${page}?`);
          return { notes: [page] };
        }),
      )
      .addConditionalEdges(START, () => [1, 2, 3, 4, 5].map((page) => new Send("note", { page, notes: [] })), ["note"])
      .addEdge("note", END)
      .compile();
    const graph = durableGraph(
      new StateGraph(Notes)
        .addNode("part", budgetedSubgraph(inner, { budget: { modelCalls: 3, onExceeded: "finish" } }))
        .addEdge(START, "part")
        .addEdge("part", END),
      { ledger: db.openLedger() },
    );
    expect((await graph.invoke({ page: 0 }, thread("beside"))).notes).toHaveLength(3);
  });

  it("that pauses names its scope, and goes on when that is raised, asking nothing twice", async () => {
    const inner = chain("paused", ["one", "two", "three"]);
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("part", budgetedSubgraph(inner, { budget: { modelCalls: 2 } }))
        .addEdge(START, "part")
        .addEdge("part", END),
      { ledger },
    );
    const before = models.requests();
    const paused = (await graph.invoke({ log: [] }, thread("part pauses"))) as unknown as Interrupted;
    const scope = paused.__interrupt__[0]?.value.scope ?? "";
    expect(scope).toMatch(/^part pauses\/part:[0-9a-f-]+\/subgraph#0$/);
    await raiseBudget(ledger, { threadId: "part pauses", scope, modelCalls: 1, by: "ann" });
    expect((await graph.invoke(null, thread("part pauses"))).log).toEqual(["paused one", "paused two", "paused three"]);
    expect(models.requests() - before).toBe(3);
  });

  it("that asks for more than is left around it is stopped by what is left, and the raise of that lets it go on", async () => {
    const inner = chain("greedy", ["one", "two"]);
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("part", budgetedSubgraph(inner, { budget: { modelCalls: 100 } }))
        .addEdge(START, "part")
        .addEdge("part", END),
      { ledger, budget: { modelCalls: 1 } },
    );
    const paused = await graph.invoke({ log: [] }, thread("greedy"));
    expect(paused).toMatchObject({
      __interrupt__: [{ value: { scope: "greedy", limit: "modelCalls", allowed: "1" } }],
    });
    await raiseBudget(ledger, { threadId: "greedy", modelCalls: 1, by: "ann" });
    expect((await graph.invoke(null, thread("greedy"))).log).toEqual(["greedy one", "greedy two"]);
  });

  it("that has a share takes it of what was left when it first opened, also when it is resumed", async () => {
    const ledger = db.openLedger();
    const inner = chain("shared", ["one", "two", "three", "four", "five", "six"]);
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "first",
          durableNode(State, async () => {
            for (const i of [1, 2]) await model().invoke(`First ${i}?`);
            return {};
          }),
        )
        .addNode("part", budgetedSubgraph(inner, { budget: { share: 0.5 } }))
        .addEdge(START, "first")
        .addEdge("first", "part")
        .addEdge("part", END),
      { ledger, budget: { modelCalls: 10 } },
    );
    for (const _ of [1, 2]) {
      const paused = await graph.invoke(_ === 1 ? { log: [] } : null, thread("share"));
      expect(paused).toMatchObject({ __interrupt__: [{ value: { limit: "modelCalls", allowed: "4", spent: "4" } }] });
    }
  });

  it("is seen by LangGraph as the graph that it holds", async () => {
    const Asked = Annotation.Root({ answer: Annotation<string> });
    const inner = new StateGraph(Asked)
      .addNode("look", async () => ({}))
      .addNode("ask", async () => ({ answer: interrupt("which?") as string }))
      .addEdge(START, "look")
      .addEdge("look", "ask")
      .addEdge("ask", END)
      .compile();
    const graph = durableGraph(
      new StateGraph(Asked)
        .addNode("part", budgetedSubgraph(inner, { budget: { usd: 1 } }))
        .addEdge(START, "part")
        .addEdge("part", END),
      { ledger: db.openLedger() },
    );
    expect([...graph.getSubgraphs()].map(([name]) => name)).toEqual(["part"]);
    expect(Object.keys((await graph.getGraphAsync({ xray: true })).nodes)).toContain("part:ask");
    await graph.invoke({ answer: "" }, thread("seen"));
    const { tasks } = await graph.getState(thread("seen"), { subgraphs: true });
    expect(tasks[0]?.state).toMatchObject({ next: ["ask"] });
  });
});

describe("a budget scope in a node", () => {
  it("counts what is called in it, and nothing else, also through a bare graph, a tool and a plain model", async () => {
    const ping = tool(async () => "pong", { name: "ping", description: "answers", schema: z.object({}) });
    const inner = new StateGraph(State)
      .addNode("plain", async () => {
        await models.chat({ maxTokens: 500 }).invoke("plain?");
        return {};
      })
      .addEdge(START, "plain")
      .addEdge("plain", END)
      .compile();
    const graph = oneNode(
      async (_state, runtime) => {
        const { step } = durable(runtime);
        await model().invoke("same words");
        await budgetScope(runtime, { name: "part", budget: { modelCalls: 2, toolCalls: 1 } }, async (scope) => {
          await scope.step.read("look", 1, async () => "inner");
          await model().invoke("same words", scope.config);
          await inner.invoke({ log: [] }, scope.config);
          const call = { name: "ping", args: {}, id: "c1", type: "tool_call" as const };
          await new ToolNode([ping]).invoke(
            { messages: [new AIMessage({ content: "", tool_calls: [call] })] },
            scope.config,
          );
        });
        return { log: [await step.read("look", 1, async () => "outer")] };
      },
      { modelCalls: 9 },
    );
    const before = models.requests();
    expect((await graph.invoke({ log: [] }, thread("in a node"))).log).toEqual(["outer"]);
    expect(models.requests() - before).toBe(3);
    expect((await scopesOf("in a node")).map(({ scope, calls }) => [scope, calls])).toEqual([
      ["in a node", "3"],
      ["in a node/node/part", "2"],
    ]);
  });

  it("of a name that was used before in the node is another one, with steps and calls of its own", async () => {
    const graph = oneNode(async (_state, runtime) => {
      const log: string[] = [];
      for (const turn of ["first", "second"]) {
        log.push(
          await budgetScope(runtime, { name: "turn", budget: { modelCalls: 1 } }, async ({ step }) => {
            await model().invoke("the same words");
            return step.read("look", null, async () => turn);
          }),
        );
      }
      return { log };
    });
    const before = models.requests();
    expect((await graph.invoke({ log: [] }, thread("twice"))).log).toEqual(["first", "second"]);
    expect(models.requests() - before).toBe(2);
  });

  it("that finishes gives its other result; without one it is refused; a caught pause of it does not pass", async () => {
    const ledger = db.openLedger();
    const run = (threadId: string, onExceeded: "finish" | "fail" | "pause", finished?: () => Promise<string>) =>
      oneNode(
        async (_state, runtime) => {
          const asked = budgetScope(
            runtime,
            { name: "part", budget: { modelCalls: 0, onExceeded } },
            async () => (await model().invoke("none")).text,
            finished,
          );
          return { log: [await asked.catch((error: Error) => `caught ${error.name}`)] };
        },
        undefined,
        ledger,
      ).invoke({ log: [] }, thread(threadId));
    expect((await run("f1", "finish", async () => "what there is")).log).toEqual(["what there is"]);
    expect((await run("f2", "finish")).log).toEqual(["caught StepUsageError"]);
    expect((await run("f3", "fail")).log).toEqual(["caught BudgetExceededError"]);
    expect(await run("f4", "pause")).toMatchObject({
      log: [],
      __interrupt__: [{ value: { kind: "BUDGET_EXCEEDED" } }],
    });
  });
});

describe("a thread that finishes", () => {
  const plan = (budget: ThreadBudget, ledger = db.openLedger()) =>
    durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (state) => {
            await model().invoke(`Work ${state.log.length}?`);
            return { log: ["work"] };
          }),
        )
        .addNode(
          "sum up",
          durableNode(State, async (_state, { budget }) => {
            await model().invoke("Sum up.");
            return { log: [`summed up, exceeded ${budget.exceeded}`] };
          }),
        )
        .addEdge(START, "work")
        .addConditionalEdges("work", ({ log }) => (log.length < 9 ? "work" : "sum up"), ["work", "sum up"])
        .addEdge("sum up", END),
      { ledger, budget },
    );

  it("goes to its wrap-up, which has what was kept back for it", async () => {
    const graph = plan({ modelCalls: 4, onExceeded: "finish", wrapUp: { node: "sum up", modelCalls: 1 } });
    expect((await graph.invoke({ log: [] }, thread("wrap"))).log).toEqual([
      "work",
      "work",
      "work",
      "summed up, exceeded true",
    ]);
    expect(await scopesOf("wrap")).toMatchObject([{ calls: "4", held: "0" }]);
    expect(await eventsOf("wrap")).toEqual(["exceeded", "wrapping up"]);
  });

  it("and cannot even wrap up pauses, and goes on when it is raised", async () => {
    const ledger = db.openLedger();
    const graph = plan({ modelCalls: 2, onExceeded: "finish", wrapUp: { node: "sum up" } }, ledger);
    expect(await graph.invoke({ log: [] }, thread("no reserve"))).toMatchObject({
      log: ["work", "work"],
      __interrupt__: [{ value: { kind: "BUDGET_EXCEEDED" } }],
    });
    await raiseBudget(ledger, { threadId: "no reserve", modelCalls: 1, by: "ann" });
    const { log } = await graph.invoke(null, thread("no reserve"));
    expect(log).toEqual(["work", "work", "summed up, exceeded false"]);
  });

  it("wraps up also where its supersteps are used up", async () => {
    const graph = plan({ iterations: 2, onExceeded: "finish", wrapUp: { node: "sum up" } });
    const { log } = await graph.invoke({ log: [] }, thread("no supersteps"));
    expect(log).toEqual(["work", "work", "summed up, exceeded true"]);
  });

  it("is refused at construction without a wrap-up, with one that is no node, or one that would keep all", () => {
    expect(() => plan({ usd: 1, onExceeded: "finish" })).toThrow(/needs `wrapUp/);
    expect(() => plan({ onExceeded: "finish", wrapUp: { node: "end" } })).toThrow(/no such node. It has: work, sum up/);
    expect(() => plan({ usd: 1, onExceeded: "finish", wrapUp: { node: "sum up", usd: 2 } })).toThrow(
      /keeps usd 2 back/,
    );
  });
});

describe("a limit on supersteps", () => {
  it("pauses before the one too many, counts a superstep that is started again once, and goes on when raised", async () => {
    const ledger = db.openLedger();
    let failing = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("turn", async ({ log }) => {
          if (log.length === 1 && failing) {
            failing = false;
            throw new Error("once");
          }
          return { log: ["turn"] };
        })
        .addEdge(START, "turn")
        .addConditionalEdges("turn", ({ log }) => (log.length < 5 ? "turn" : END), ["turn", END]),
      { ledger, budget: { iterations: 3 } },
    );
    await expect(graph.invoke({ log: [] }, thread("turns"))).rejects.toThrow("once");
    const paused = await graph.invoke(null, thread("turns"));
    expect(paused).toMatchObject({
      log: ["turn", "turn", "turn"],
      __interrupt__: [{ value: { limit: "iterations", allowed: "3", spent: "3" } }],
    });
    const raised = await longhaul(db.url, "budget", "raise", "turns", "--iterations", "2", "--by", "ann", "--json");
    expect(raised.code).toBe(0);
    expect((await graph.invoke(null, thread("turns"))).log).toHaveLength(5);
    expect(await scopesOf("turns")).toMatchObject([{ iterations: "5" }]);
  });

  it("BUD-04: a child is stopped by what is left of its parent, never by a limit that nobody set", async () => {
    const chat = model();
    let told: object | undefined;
    const inner = durableGraph(
      new StateGraph(State)
        .addNode(
          "turn",
          durableNode(State, async ({ log }) => {
            await chat.invoke(`Turn ${log.length}?`);
            return { log: ["turn"] };
          }),
        )
        .addEdge(START, "turn")
        .addConditionalEdges("turn", ({ log }) => (log.length < 60 ? "turn" : END), ["turn", END]),
      { ledger: db.openLedger() },
    );
    const graph = oneNode(
      async (_state, runtime) => {
        told = await inner.invoke({ log: [] }, { ...runtime, configurable: { thread_id: "bud-04 child" } });
        return {};
      },
      { modelCalls: 40 },
    );
    await graph.invoke({ log: [] }, { ...thread("bud-04"), recursionLimit: 1000 });
    expect(told).toMatchObject({ __interrupt__: [{ value: { scope: "bud-04", limit: "modelCalls", spent: "40" } }] });
  });
});

describe("a budget of a run", () => {
  it("counts anew with new input, and goes on counting when the run is resumed", async () => {
    const graph = oneNode(
      durableNode(State, async () => {
        await model().invoke("once");
        const answer: unknown = interrupt("go on?");
        await model().invoke("twice");
        return { log: [String(answer)] };
      }),
      { modelCalls: 2, per: "run" },
    );
    for (const turn of ["a", "b"]) {
      await graph.invoke({ log: [] }, thread("per run"));
      expect((await graph.invoke(new Command({ resume: turn }), thread("per run"))).log.at(-1)).toBe(turn);
      expect(await scopesOf("per run")).toMatchObject([{ calls: "2" }]);
    }
    expect(await eventsOf("per run")).toEqual(["new run", "new run"]);
  });
});

describe("a client", () => {
  it("changes nothing about a budget by what it sends in `configurable`", async () => {
    const graph = oneNode(
      durableNode(State, async () => {
        for (const i of [1, 2]) await model().invoke(`Client ${i}?`);
        return {};
      }),
      { modelCalls: 1 },
    );
    const sent = { budget: { modelCalls: 9 }, modelCalls: 9, scope: "mine", purse: null, wrapUp: { node: "node" } };
    const config = { configurable: { thread_id: "client", ...sent }, metadata: { ...sent } };
    const paused = await graph.invoke({ log: [] }, config);
    expect(paused).toMatchObject({
      __interrupt__: [{ value: { scope: "client", limit: "modelCalls", allowed: "1" } }],
    });
  });
});

describe("what a budget tells", () => {
  it("shows each change of rung in its history, and who raised what", async () => {
    const tiers = degradeLadder({ size: "full" }, { below: 0.6, use: { size: "small" } });
    const ledger = db.openLedger();
    const graph = oneNode(
      durableNode(State, async (_state, { budget }) => {
        const sizes: string[] = [];
        for (let i = 0; i < 3; i++) {
          await budget.refresh();
          sizes.push(budget.pick(tiers).size);
          await model().invoke(`Rung ${i}?`);
        }
        return { log: sizes };
      }),
      { modelCalls: 4 },
      ledger,
    );
    expect((await graph.invoke({ log: [] }, thread("rungs"))).log).toEqual(["full", "full", "small"]);
    await vi.waitFor(async () => expect(await eventsOf("rungs")).toEqual(["degraded"]));
    await raiseBudget(ledger, { threadId: "rungs", modelCalls: 4, by: "ann", reason: "more" });
    const shown = await longhaul(db.url, "budget", "history", "rungs", "--json");
    expect(shown.lines).toMatchObject([
      { kind: "degraded", detail: { below: 0.6, remainingRatio: 0.5 } },
      { kind: "raised", by: "ann", detail: { modelCalls: 4, reason: "more" } },
    ]);
  });

  it("budget.require pauses before work that it could not pay, and goes on when raised", async () => {
    const ledger = db.openLedger();
    const graph = oneNode(
      durableNode(State, async (_state, { budget }) => {
        await budget.require({ modelCalls: 3 });
        return { log: ["enough"] };
      }),
      { modelCalls: 2 },
      ledger,
    );
    expect(await graph.invoke({ log: [] }, thread("require"))).toMatchObject({
      log: [],
      __interrupt__: [{ value: { limit: "modelCalls", allowed: "2", requested: "3" } }],
    });
    await raiseBudget(ledger, { threadId: "require", modelCalls: 1, by: "ann" });
    expect((await graph.invoke(null, thread("require"))).log).toEqual(["enough"]);
  });
});
