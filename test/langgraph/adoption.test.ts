// Adoption keeps shapes and types: what goes in comes out, in every way of writing state.
import {
  Annotation,
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { beforeAll, describe, expect, expectTypeOf, it, vi } from "vitest";
import { z } from "zod";
import { durableGraph, durableNode, type Ledger, type NodeRuntime, operation, toolRegistry } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({
  n: Annotation<number>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const builder = () =>
  new StateGraph(State)
    .addNode("a", async (s) => ({ n: s.n + 1, log: ["a"] }))
    .addNode("b", async (s) => ({ log: [`b${s.n}`] }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", END);

describe("adoption in two lines", () => {
  it("keeps the type and behaviour of a builder and of a compiled graph", async () => {
    const plain = builder().compile();
    const fromBuilder = durableGraph(builder(), { ledger });
    const fromCompiled = durableGraph(builder().compile(), { ledger });
    expectTypeOf(fromCompiled).toEqualTypeOf(plain);
    expectTypeOf<Awaited<ReturnType<typeof fromBuilder.invoke>>>().toEqualTypeOf<
      Awaited<ReturnType<typeof plain.invoke>>
    >();
    expectTypeOf<Parameters<typeof fromBuilder.invoke>[0]>().toEqualTypeOf<Parameters<typeof plain.invoke>[0]>();
    // @ts-expect-error: n is a number
    void (() => fromBuilder.invoke({ n: "x" }));
    const expected = { n: 2, log: ["a", "b2"] };
    expect(await fromBuilder.invoke({ n: 1 }, thread("builder"))).toEqual(expected);
    expect(await fromCompiled.invoke({ n: 1 }, thread("compiled"))).toEqual(expected);
    expect(Object.keys(fromBuilder.nodes)).toEqual(Object.keys(plain.nodes));
    expect((await fromBuilder.getGraphAsync()).drawMermaid()).toBe((await plain.getGraphAsync()).drawMermaid());
  });

  it("takes zod state, StateSchema state, and messages with a context", async () => {
    const Zod = z.object({ url: z.string(), title: z.string().default("t") });
    const zod = durableGraph(
      new StateGraph(Zod)
        .addNode("a", (s) => ({ title: s.url.toUpperCase() }))
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger },
    );
    expect(await zod.invoke({ url: "u" }, thread("zod"))).toEqual({ url: "u", title: "U" });

    const notes = new ReducedValue(
      z.array(z.string()).default(() => []),
      { inputSchema: z.string(), reducer: (a: string[], b: string) => [...a, b] },
    );
    const schema = new StateSchema({ q: z.string(), notes });
    const schemed = durableGraph(
      new StateGraph(schema)
        .addNode("a", (s) => ({ notes: s.q }))
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger },
    );
    expect(await schemed.invoke({ q: "q" }, thread("schema"))).toMatchObject({ notes: ["q"] });

    const withContext = durableGraph(
      new StateGraph(MessagesAnnotation, z.object({ user: z.string() }))
        .addNode(
          "a",
          durableNode(MessagesAnnotation, async (_s, { context }: NodeRuntime<{ user: string }>) => ({
            messages: [{ role: "user", content: `${context?.user}` }],
          })),
        )
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger },
    );
    const { messages } = await withContext.invoke({ messages: [] }, { ...thread("context"), context: { user: "ann" } });
    expect(messages[0]?.content).toBe("ann");
  });

  it("gives a durable node its state's type, and its steps theirs", async () => {
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (s, { step }) => {
            expectTypeOf(s.n).toEqualTypeOf<number>();
            const page = await step.read("page", { n: s.n }, async () => ({ text: "x".repeat(s.n) }));
            expectTypeOf(page).toEqualTypeOf<{ text: string }>();
            return new Command({ update: { n: page.text.length }, goto: "b" });
          }),
          { ends: ["b"] },
        )
        .addNode("b", async (s) => ({ log: [`b${s.n}`] }))
        .addEdge(START, "a")
        .addEdge("b", END),
      { ledger },
    );
    expect((await graph.invoke({ n: 3 }, thread("typed"))).log).toEqual(["b3"]);
    const charge = { name: "x", version: "1.0.0", effect: "write" as const, run: async () => ({ id: 1 }) };
    // @ts-expect-error: the receipt has the type of what run returns
    void (() => operation({ ...charge, lookup: async () => ({ outcome: "happened", receipt: { id: "no" } }) }));
  });

  it("streams, keeps withConfig and reads state as before", async () => {
    const graph = durableGraph(builder(), { ledger }).withConfig({ tags: ["x"] });
    const updates: string[] = [];
    for await (const chunk of await graph.stream({ n: 1 }, { ...thread("stream"), streamMode: "updates" }))
      updates.push(...Object.keys(chunk));
    expect(updates).toEqual(["a", "b"]);
    const kinds = new Set<string>();
    for await (const event of graph.streamEvents({ n: 1 }, { ...thread("events"), version: "v2" }))
      kinds.add(event.event);
    expect(kinds).toContain("on_chain_end");
    expect((await graph.getState(thread("stream"))).values).toEqual({ n: 2, log: ["a", "b2"] });
    const history = [];
    for await (const state of graph.getStateHistory(thread("stream"))) history.push(state.metadata?.step);
    expect(history).toEqual([2, 1, 0, -1]);
    expect(await db.sql("select state from longhaul.threads where thread_id = 'stream'")).toEqual([{ state: "done" }]);
  });

  it("joins a durable graph, or a bare one, that a node runs on the same thread", async () => {
    const inner = durableGraph(builder(), { ledger });
    const bare = builder().compile();
    const outer = durableGraph(
      new StateGraph(State)
        .addNode("outer", async (s) => {
          const { log } = await inner.invoke({ n: s.n });
          return { log: [...log, ...(await bare.invoke({ n: 5 })).log] };
        })
        .addEdge(START, "outer")
        .addEdge("outer", END),
      { ledger },
    );
    expect((await outer.invoke({ n: 1 }, thread("joined"))).log).toEqual(["a", "b2", "a", "b6"]);
    expect(await db.sql("select epoch from longhaul.threads where thread_id = 'joined'")).toEqual([{ epoch: "1" }]);
  });

  it("keeps a checkpointer that was given, and says so once", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const graph = durableGraph(builder().compile({ checkpointer: new MemorySaver() }), { ledger });
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
    expect(graph.checkpointer).toBeInstanceOf(MemorySaver);
    expect((await graph.invoke({ n: 1 }, thread("foreign"))).n).toBe(2);
    expect(await db.sql("select count(*)::int as n from longhaul.checkpoints where thread_id = 'foreign'")).toEqual([
      { n: 0 },
    ]);
  });

  it("is idempotent, and one graph has one ledger", () => {
    const graph = durableGraph(builder(), { ledger });
    expect(durableGraph(graph, { ledger })).toBe(graph);
    expect(() => durableGraph(graph, { ledger: db.openLedger() })).toThrow(/another ledger/);
  });
});

describe("what durableGraph refuses", () => {
  it.each([
    ["pins that are no texts", () => durableGraph(builder(), { ledger, pins: { prompt: 1 } } as never), /pins/],
    ["no ledger", () => durableGraph(builder(), {} as never), /openLedger/],
    ["a graph that is none", () => durableGraph({} as never, { ledger }), /compiled graph/],
    [
      "checkpointer: false",
      () => durableGraph(builder().compile({ checkpointer: false }), { ledger }),
      /checkpointer: false/,
    ],
    [
      "a retryPolicy on a bare subgraph",
      () =>
        durableGraph(
          new StateGraph(State)
            .addNode("s", builder().compile(), { retryPolicy: { maxAttempts: 2 } })
            .addEdge(START, "s")
            .addEdge("s", END),
          { ledger },
        ),
      /retryPolicy/,
    ],
    [
      "two operations of one name",
      () => {
        const pay = operation({ name: "pay", version: "1.0.0", effect: "write", run: async () => 1 });
        return durableGraph(builder(), { ledger, operations: [pay, { ...pay }] });
      },
      /Two operations/,
    ],
    ["a tool that is not durable", () => toolRegistry([{ name: "t" } as never]), /not durable/],
    [
      "an idempotent write without a key's lifetime",
      () => operation({ name: "p", version: "1.0.0", effect: "write", idempotent: true, run: async () => 1 }),
      /keyLifetimeMs/,
    ],
  ])("%s", (_what, make, message) => {
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringMatching(message) }));
  });

  it("a run without a thread, with durability exit, or with an impossible thread id", async () => {
    const graph = durableGraph(builder(), { ledger });
    await expect(graph.invoke({ n: 1 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("thread_id"),
    });
    await expect(graph.invoke({ n: 1 }, { ...thread("exit"), durability: "exit" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    await expect(graph.invoke({ n: 1 }, thread("a\0b"))).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(await db.sql("select 1 from longhaul.threads where thread_id like 'exit%' or thread_id like 'a%b'")).toEqual(
      [],
    );
  });
});
