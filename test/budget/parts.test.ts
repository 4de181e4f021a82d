// Parts of a node with budgets of their own: nothing in one may be taken for what is in another, whatever order they run in.
import type { RunnableConfig } from "@langchain/core/runnables";
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  budgetedSubgraph,
  budgetScope,
  durableGraph,
  durableModel,
  InvalidOptionError,
  raiseBudget,
  type ThreadBudget,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { type Node, nodeGraph } from "./nodeGraph.js";

let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
});
const model = () => durableModel(models.chat({ maxTokens: 500 }));
const plain = () => models.chat({ maxTokens: 500 });
const oneNode = (node: Node, budget?: ThreadBudget) => nodeGraph(db.openLedger(), node, budget);

interface Paused {
  readonly __interrupt__: readonly { readonly value: { readonly scope: string } }[];
}

/** Opens once, for all who wait. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** A graph of one node that asks the model and answers with its own name. */
const asker = (name: string) =>
  new StateGraph(State)
    .addNode("ask", async () => {
      await model().invoke(`asked by ${name}`);
      return { log: [name] };
    })
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile();

describe("graphs that two parts of a node invoke", () => {
  type Part = "A" | "B";
  const inParts =
    (ready: (name: Part) => Promise<void>, ended: (name: Part) => void) =>
    async (_state: unknown, runtime: RunnableConfig) => ({
      log: await Promise.all(
        (["A", "B"] as const).map((name) =>
          budgetScope(runtime, { name, budget: { modelCalls: 2 } }, async ({ config }) => {
            await ready(name);
            const { log } = await asker(name).invoke({ log: [] }, config);
            ended(name);
            return `${name} has ${log}`;
          }),
        ),
      ),
    });

  it("keep their own checkpoints when the parts come in another order after a failure", async () => {
    let attempts = 0;
    const done = { A: gate(), B: gate() };
    // The first time B waits for A and then fails; the second time A waits for B.
    const ready = async (name: string) => {
      if (attempts === 1 && name === "B") {
        await done.A.opened;
        throw new Error("lost on the way");
      }
      if (attempts === 2 && name === "A") await done.B.opened;
    };
    const node = inParts(ready, (name) => done[name].open());
    const graph = oneNode(
      (state, runtime) => {
        attempts++;
        return node(state, runtime);
      },
      { modelCalls: 9 },
    );
    const before = models.requests();
    await expect(graph.invoke({ log: [] }, thread("order"))).rejects.toThrow("lost on the way");
    expect(await graph.invoke(null, thread("order"))).toEqual({ log: ["A has A", "B has B"] });
    expect(models.requests() - before).toBe(2);
  });

  it("keep them when one part was paused by its budget while the other was done", async () => {
    const ledger = db.openLedger();
    const graph = nodeGraph(
      ledger,
      async (_state, runtime) => ({
        log: await Promise.all(
          ["A", "B"].map((name) =>
            budgetScope(runtime, { name, budget: { modelCalls: name === "A" ? 0 : 2 } }, async ({ config, budget }) => {
              if (name === "A") await budget.require({ modelCalls: 1 });
              return `${name} has ${(await asker(name).invoke({ log: [] }, config)).log}`;
            }),
          ),
        ),
      }),
      { modelCalls: 9 },
    );
    const before = models.requests();
    const paused = (await graph.invoke({ log: [] }, thread("swap"))) as unknown as Paused;
    const scope = paused.__interrupt__[0]?.value.scope ?? "";
    await raiseBudget(ledger, { threadId: "swap", scope, modelCalls: 2, by: "ops" });
    expect(await graph.invoke(null, thread("swap"))).toEqual({ log: ["A has A", "B has B"] });
    expect(models.requests() - before).toBe(2);
  });
});

describe("parts of one name", () => {
  it("are refused when they are open at once, before a second effect", async () => {
    const sent: string[] = [];
    const graph = oneNode(async (_state, runtime) => ({
      log: await Promise.all(
        ["ann", "bob"].map((to) =>
          budgetScope(runtime, { name: "mail", budget: {} }, ({ step }) =>
            step.write("send", "hello", async () => {
              sent.push(to);
              return to;
            }),
          ),
        ),
      ),
    }));
    await expect(graph.invoke({ log: [] }, thread("at once"))).rejects.toThrow(/open at once/);
    expect(sent).toEqual(["ann"]);
  });

  it("in two parts of different names, and outside of both, are three: each asks for itself", async () => {
    const ask = (config: RunnableConfig) =>
      budgetScope(config, { name: "x", budget: { modelCalls: 2 } }, async () => {
        await model().invoke("the same words everywhere");
      });
    const graph = oneNode(async (_state, runtime) => {
      for (const name of ["a", "b"])
        await budgetScope(runtime, { name, budget: { modelCalls: 5 } }, ({ config }) => ask(config));
      await ask(runtime);
      return { log: ["done"] };
    });
    const before = models.requests();
    await graph.invoke({ log: [] }, thread("nested"));
    expect(models.requests() - before).toBe(3);
  });

  it.each(["a:b", "a/b", "a#0", "a|b", ""])("cannot hold what sets parts apart: %j", async (name) => {
    const graph = oneNode(async (_state, runtime) => {
      await budgetScope(runtime, { name, budget: { modelCalls: 1 } }, async () => {});
      return {};
    });
    await expect(graph.invoke({ log: [] }, thread(`odd ${name}`))).rejects.toThrow(/name/);
  });
});

describe("a call in a part", () => {
  it("pays from the part also when it is made with the node's own config", async () => {
    const graph = oneNode(
      async (_state, runtime) => {
        await budgetScope(runtime, { name: "part", budget: { modelCalls: 1 } }, async () => {
          for (const nth of [1, 2, 3]) await model().invoke(`call ${nth}`, runtime);
        });
        return { log: ["passed"] };
      },
      { modelCalls: 9 },
    );
    const before = models.requests();
    const paused = (await graph.invoke({ log: [] }, thread("node config"))) as unknown as Paused;
    expect(paused.__interrupt__[0]?.value.scope).toContain("/part#");
    expect(models.requests() - before).toBe(1);
  });

  it("is not made by a fallback once a limit has paused the part", async () => {
    const big = models.chat({ maxTokens: 5000 });
    const small = models.chat({ maxTokens: 100 });
    const graph = oneNode(async () => ({ log: [(await big.withFallbacks([small]).invoke("which?")).text] }), {
      tokens: 2000,
    });
    const before = models.requests();
    expect(await graph.invoke({ log: [] }, thread("fallback"))).toHaveProperty("__interrupt__");
    expect(models.requests() - before).toBe(0);
  });

  it("holds back what its answer's schema takes, which is sent along", async () => {
    const field = z.string().describe("a long description of this field ".repeat(10));
    const wide = z.object(Object.fromEntries(Array.from({ length: 200 }, (_, nth) => [`field_${nth}`, field])));
    for (const method of ["jsonSchema", "functionCalling"] as const) {
      const graph = oneNode(
        async () => {
          await model().withStructuredOutput(wide, { method }).invoke("city");
          return {};
        },
        { tokens: 900 },
      );
      const before = models.requests();
      expect(await graph.invoke({ log: [] }, thread(`schema ${method}`))).toHaveProperty("__interrupt__");
      expect(models.requests() - before).toBe(0);
    }
  });

  it("that nobody reads to its end does not hold up the next one, and its estimate stands", async () => {
    const graph = oneNode(
      async () => {
        for await (const _chunk of await plain().stream("the first")) break;
        await plain().invoke("the second");
        return { log: ["done"] };
      },
      { tokens: 2600 },
    );
    expect(await graph.invoke({ log: [] }, thread("unread"))).toEqual({ log: ["done"] });
    expect(await db.sql("select reserved_tokens::int as held from longhaul.budgets where scope = 'unread'")).toEqual([
      { held: 0 },
    ]);
  }, 30_000);
});

describe("a budget that nothing would heed", () => {
  it("of a graph that another runs on the same thread is refused, and of one in a budgetedSubgraph", async () => {
    const ledger = db.openLedger();
    const inner = nodeGraph(ledger, async () => ({ log: ["in"] }), { modelCalls: 1 });
    const builder = new StateGraph(State).addNode("sub", inner).addEdge(START, "sub").addEdge("sub", END);
    const outer = durableGraph(builder, { ledger });
    await expect(outer.invoke({ log: [] }, thread("joined"))).rejects.toThrow(InvalidOptionError);
    expect(() => budgetedSubgraph(inner, { budget: { modelCalls: 1 } })).toThrow(/budget of its own/);
  });
});

describe("a thread that has wrapped up", () => {
  it("keeps the wrap-up's part back anew when it is given new input", async () => {
    const ledger = db.openLedger();
    const builder = new StateGraph(State)
      .addNode("work", async ({ log }) => {
        for (let nth = 0; nth < (log.includes("greedy") ? 9 : 1); nth++) await model().invoke(`work ${nth}`);
        return { log: ["work"] };
      })
      .addNode("sum", async () => {
        await model().invoke("sum");
        return { log: ["sum"] };
      })
      .addEdge(START, "work")
      .addEdge("work", "sum")
      .addEdge("sum", END);
    const graph = durableGraph(builder, {
      ledger,
      budget: { modelCalls: 6, onExceeded: "finish", wrapUp: { node: "sum", modelCalls: 1 } },
    });
    expect(await graph.invoke({ log: ["modest"] }, thread("again"))).toEqual({ log: ["modest", "work", "sum"] });
    const { log } = await graph.invoke({ log: ["greedy"] }, thread("again"));
    expect(log.slice(3)).toEqual(["greedy", "sum"]);
    const [row] = await db.sql("select spent_model_calls::int as spent from longhaul.budgets where scope = 'again'");
    expect(row).toEqual({ spent: 6 });
  });
});
