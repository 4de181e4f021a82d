// OpenTelemetry spans, as a collector receives them from the real exporter.
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Command,
  END,
  GraphDrained,
  interrupt,
  MessagesAnnotation,
  ParentCommand,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { type ContextManager, context, type Span, type Tracer, type TracerProvider, trace } from "@opentelemetry/api";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  compensateNode,
  drainReason,
  durable,
  durableGraph,
  durableModel,
  durableTool,
  type Ledger,
  type NodeRuntime,
  operation,
  type Step,
  toolRegistry,
} from "../../src/index.js";
import { outcomeOf } from "../../src/langgraph/span/callSpan.js";
import { errorType } from "../../src/langgraph/span/spanNames.js";
import { oneNode, State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { above, spanCalled, traceServer } from "../support/traceServer.js";

let db: TestDatabase;
let ledger: Ledger;
let models: Awaited<ReturnType<typeof modelServer>>;
let refusing: Awaited<ReturnType<typeof modelServer>>;
let collector: Awaited<ReturnType<typeof traceServer>>;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  models = await modelServer();
  refusing = await modelServer({ error: { message: "SECRET words", type: "invalid" }, status: 400 });
  collector = await traceServer();
});

const tracing: typeof collector.tracing = (work, options) => collector.tracing(work, options);
const WORKFLOW = "invoke_workflow LangGraph";
const CHAT = "chat gpt-4.1-mini";
const INTERNAL = 1;
const CLIENT = 3;
const UNSET = { code: 0 };
const FAILED = 2;

/** Runs a graph of one node to its end. */
const run = (id: string, work: (step: Step, runtime: NodeRuntime) => Promise<unknown>) =>
  oneNode(ledger, work).invoke({ log: [] }, thread(id));

const caught = (running: Promise<unknown>) =>
  running.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a run's spans", () => {
  it("are its own below the caller's, and one for each recorded step", async () => {
    const model = durableModel(models.chat());
    const post = operation({ name: "post", version: "1.0.0", effect: "write", run: async () => ({ id: "SECRET" }) });
    const spans = await tracing(() =>
      trace.getTracer("test").startActiveSpan("caller", async (span) => {
        await run("steps", async (step) => {
          await step.read("fetch", { of: "SECRET" }, async () => "SECRET");
          await step.run(post, { title: "SECRET" });
          return (await model.invoke("SECRET question")).text;
        });
        span.end();
      }),
    );
    expect(spans.map(({ name }) => name)).toEqual(["read fetch", "write post", CHAT, WORKFLOW, "caller"]);
    expect(spans.map((span) => above(spans, span)[0])).toEqual([WORKFLOW, WORKFLOW, WORKFLOW, "caller", undefined]);

    expect(spanCalled(spans, WORKFLOW)).toMatchObject({ kind: INTERNAL, status: UNSET, events: [] });
    expect(spanCalled(spans, WORKFLOW).attributes).toEqual({
      "gen_ai.operation.name": "invoke_workflow",
      "gen_ai.agent.name": "LangGraph",
      "gen_ai.conversation.id": "steps",
      "longhaul.outcome": "done",
      "longhaul.replayed": 0,
    });
    const [row] = await db.sql("select encode(key, 'hex') as key from longhaul.steps where name = 'post'");
    expect(spanCalled(spans, "write post").attributes).toEqual({
      "gen_ai.conversation.id": "steps",
      "longhaul.node": "node",
      "longhaul.step.name": "post",
      "longhaul.step.key": row?.["key"],
      "longhaul.step.kind": "node",
      "longhaul.step.effect": "write",
      "longhaul.attempt": 1,
      "longhaul.tries": 1,
      "longhaul.outcome": "done",
    });
    expect(spanCalled(spans, CHAT)).toMatchObject({ kind: CLIENT, status: UNSET });
    expect(spanCalled(spans, CHAT).attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4.1-mini",
      "gen_ai.response.model": expect.stringContaining("gpt"),
      "gen_ai.conversation.id": "steps",
      "gen_ai.usage.input_tokens": 1000,
      "gen_ai.usage.output_tokens": 500,
      "gen_ai.usage.cache_read.input_tokens": 0,
      "longhaul.cost_nano_usd": 1_200_000,
      "longhaul.node": "node",
      "longhaul.outcome": "done",
    });
    expect(collector.sent()).not.toContain("SECRET");
  });

  it("tell of plain models and tools, streamed and not, with what they used", async () => {
    const plain = models.chat({ streamUsage: true });
    const look = tool(async () => "SECRET", { name: "look", schema: z.object({ at: z.string() }) });
    const spans = await tracing(() =>
      run("plain", async () => {
        await plain.invoke("SECRET one");
        for await (const _ of await plain.stream("SECRET two"));
        return look.invoke({ type: "tool_call", id: "call_7", name: "look", args: { at: "SECRET" } });
      }),
    );
    expect(spans.map(({ name }) => name)).toEqual([CHAT, CHAT, "execute_tool look", WORKFLOW]);
    for (const { attributes } of spans.slice(0, 2)) {
      expect(attributes).toMatchObject({
        "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 500,
        "longhaul.cost_nano_usd": 1_200_000,
        "longhaul.node": "node",
      });
      expect(attributes).not.toHaveProperty("longhaul.step.key");
    }
    expect(spanCalled(spans, "execute_tool look").attributes).toEqual({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "look",
      "gen_ai.tool.call.id": "call_7",
      "gen_ai.conversation.id": "plain",
      "longhaul.node": "node",
      "longhaul.outcome": "done",
    });
    expect(collector.sent()).not.toContain("SECRET");
  });

  it("say that a model has no known price, and never that it is free", async () => {
    const model = durableModel(models.chat({ model: "house-model" }));
    const spans = await tracing(() => run("unpriced", async () => (await model.invoke("Hello?")).text));
    const { attributes } = spanCalled(spans, "chat house-model");
    expect(attributes).toMatchObject({ "longhaul.unpriced": true, "gen_ai.usage.input_tokens": 1000 });
    expect(attributes).not.toHaveProperty("longhaul.cost_nano_usd");
  });
});

describe("a replay", () => {
  it("is an event of the run, and adds no usage", async () => {
    const model = durableModel(models.chat());
    const search = durableTool(
      tool(async () => "found", { name: "search", schema: z.object({ q: z.string() }) }),
      { version: "1.0.0", effect: "read" },
    );
    let fail = true;
    const graph = oneNode(ledger, async (step) => {
      await step.write("send", {}, async () => "sent");
      await model.invoke("What?");
      await search.invoke({ type: "tool_call", id: "call_1", name: "search", args: { q: "x" } });
      if (fail) throw new TypeError("SECRET of the node");
      return "done";
    });
    const first = await tracing(() => caught(graph.invoke({ log: [] }, thread("replay"))));
    expect(first.map(({ name }) => name)).toEqual(["write send", CHAT, "execute_tool search", WORKFLOW]);
    expect(spanCalled(first, WORKFLOW)).toMatchObject({
      status: { code: FAILED },
      attributes: { "error.type": "TypeError", "longhaul.outcome": "failed" },
    });
    expect(spanCalled(first, "execute_tool search").attributes).toMatchObject({
      "gen_ai.tool.call.id": "call_1",
      "longhaul.step.kind": "tool",
      "longhaul.step.effect": "read",
    });
    expect(collector.sent()).not.toContain("SECRET");
    fail = false;
    const again = await tracing(() => graph.invoke(null, thread("replay")));
    expect(again.map(({ name }) => name)).toEqual([WORKFLOW]);
    expect(again[0]?.attributes).toMatchObject({ "longhaul.replayed": 3, "longhaul.outcome": "done" });
    expect(again[0]?.events.map(({ name, attributes }) => [name, attributes["longhaul.step.name"]])).toEqual([
      ["longhaul.replayed", "send"],
      ["longhaul.replayed", "model"],
      ["longhaul.replayed", "search"],
    ]);
    expect(collector.sent()).not.toContain("usage");
  });
});

describe("a failure", () => {
  it("is told by its kind alone", async () => {
    const spans = await tracing(async () => {
      await caught(run("refused", async () => durableModel(refusing.chat()).invoke("Hello?")));
      await caught(run("refused-plain", async () => refusing.chat().invoke("Hello?")));
      await caught(
        run("bad-write", (step) =>
          step.write("send", {}, async () => {
            throw Object.assign(new Error("SECRET words"), { status: 422 });
          }),
        ),
      );
    });
    const failed = spans.filter(({ name }) => name !== WORKFLOW);
    expect(failed.map(({ name, attributes }) => [name, attributes["error.type"]])).toEqual([
      [CHAT, "400"],
      [CHAT, "400"],
      ["write send", "422"],
    ]);
    for (const { status, events } of spans) expect([status, events]).toEqual([{ code: FAILED }, []]);
    expect(spans.every(({ attributes }) => attributes["longhaul.outcome"] === "failed")).toBe(true);
    expect(collector.sent()).not.toContain("SECRET");
  });

  it("that was tried again is one span, which counts its tries", async () => {
    let left = 2;
    const spans = await tracing(() =>
      run("again", (step) =>
        step.read("flaky", {}, async () => {
          if (left-- > 0) throw Object.assign(new Error("busy"), { status: 429, headers: { "retry-after": "0" } });
          return "read";
        }),
      ),
    );
    const { attributes, status } = spanCalled(spans, "read flaky");
    expect([attributes["longhaul.tries"], attributes["longhaul.outcome"], status]).toEqual([3, "done", UNSET]);
  });

  it("has a kind that is an identifier, never a text", () => {
    const unreadable = new Proxy({}, { get: () => expect.fail("unreadable") });
    const odd = Object.assign(new Error("x"), { name: "Order of ann@example.com failed" });
    const kinds = [new RangeError("x"), odd, { code: "ECONNRESET" }, "SECRET words", undefined, unreadable];
    expect(kinds.map(errorType)).toEqual(["RangeError", "_OTHER", "ECONNRESET", "_OTHER", "_OTHER", "_OTHER"]);
  });
});

describe("a run that leaves without having failed", () => {
  it("by a Command for the graph around it has a result", () => {
    expect(outcomeOf(new ParentCommand(new Command({ goto: "next" })))).toBe("done");
    expect(outcomeOf(new GraphDrained("shutting down"))).toBe("drained");
  });

  it("says how, with its status unset", async () => {
    const spans = await tracing(async () => {
      await run("asks", async () => interrupt("SECRET question"));
      const drain = await caught(
        run("later", (step) =>
          step.read("limited", {}, async () => {
            throw Object.assign(new Error("x"), { status: 429, headers: { "retry-after": "3600" } });
          }),
        ),
      );
      expect(drainReason(drain)?.kind).toBe("due");
      await run("unknown", (step) =>
        step.write("lost", {}, async () => {
          throw new Error("reset");
        }),
      );
    });
    expect(spans.map(({ name, status, attributes }) => [name, status, attributes["longhaul.outcome"]])).toEqual([
      [WORKFLOW, UNSET, "waiting"],
      ["read limited", UNSET, "due"],
      [WORKFLOW, UNSET, "due"],
      ["write lost", UNSET, "waiting"],
      [WORKFLOW, UNSET, "waiting"],
    ]);
    expect(collector.sent()).not.toContain("SECRET");
  });

  it("says that another run has the thread", async () => {
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let free = () => {};
    const freed = new Promise<void>((resolve) => {
      free = resolve;
    });
    const graph = oneNode(ledger, async () => {
      begin();
      await freed;
    });
    const spans = await tracing(async () => {
      const first = graph.invoke({ log: [] }, thread("held"));
      await begun;
      expect(drainReason(await caught(graph.invoke({ log: [] }, thread("held"))))?.kind).toBe("busy");
      free();
      await first;
    });
    expect(spans.map(({ status, attributes }) => [status, attributes["longhaul.outcome"]])).toEqual([
      [UNSET, "busy"],
      [UNSET, "done"],
    ]);
  });
});

/** A graph whose node calls a tool that asks a recorded model, then a durable graph on a thread of its own. */
function nested() {
  const model = durableModel(models.chat());
  const think = durableTool(
    tool(async () => (await model.invoke("Think!")).text, { name: "think", schema: z.object({}) }),
    { version: "1.0.0", effect: "none" },
  );
  const inner = durableGraph(
    new StateGraph(State)
      .addNode("read", async (_state, runtime) => ({
        log: [await durable(runtime).step.read("inner", {}, async () => "x")],
      }))
      .addEdge(START, "read")
      .addEdge("read", END)
      .compile({ name: "inner graph" }),
    { ledger },
  );
  const ask = new AIMessage({ content: "", tool_calls: [{ id: "call_1", name: "think", args: {} }] });
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("tools", new ToolNode([think]))
    .addNode("graph", async (_state, runtime) => {
      await inner.invoke({ log: [] }, { ...runtime, ...thread(`inner of ${runtime.configurable?.["thread_id"]}`) });
      return {};
    })
    .addEdge(START, "tools")
    .addEdge("tools", "graph")
    .addEdge("graph", END);
  return { graph: durableGraph(builder, { ledger }), input: { messages: [ask] } };
}

describe("a call inside another one", () => {
  const tree = [
    [CHAT, "execute_tool think", WORKFLOW],
    ["execute_tool think", WORKFLOW],
    ["read inner", "invoke_workflow inner graph", WORKFLOW],
    ["invoke_workflow inner graph", WORKFLOW],
    [WORKFLOW],
  ];

  it("is below it: in a plain tool, and in a run on a thread of its own", async () => {
    const { graph, input } = nested();
    const spans = await tracing(() => graph.invoke(input, thread("nested")));
    expect(spans.map((span) => [span.name, ...above(spans, span)])).toEqual(tree);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it("is so without a context manager too", async () => {
    const { graph, input } = nested();
    const spans = await tracing(() => graph.invoke(input, thread("no contexts")), { contexts: false });
    expect(spans.map((span) => [span.name, ...above(spans, span)])).toEqual(tree);
  });

  it("is below the user's own span, and the user's below a step", async () => {
    const plain = models.chat();
    const spans = await tracing(() =>
      run("own", (step) =>
        trace.getTracer("test").startActiveSpan("mine", async (mine) => {
          await step.read("fetch", {}, () =>
            trace.getTracer("test").startActiveSpan("http", async (http) => {
              await plain.invoke("Hello?");
              http.end();
              return "x";
            }),
          );
          mine.end();
        }),
      ),
    );
    const chat = spanCalled(spans, CHAT);
    expect(above(spans, chat)).toEqual(["http", "read fetch", "mine", WORKFLOW]);
  });

  it("is told of an undo as of any other write", async () => {
    const pay = durableTool(
      tool(async () => "paid", { name: "pay", schema: z.object({}) }),
      { version: "1.0.0", effect: "write", compensate: async () => {} },
    );
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("pay", async () => {
          await pay.invoke({ type: "tool_call", id: "call_1", name: "pay", args: {} });
          return {};
        })
        .addNode("undo", compensateNode({ done: () => ({}) }))
        .addEdge(START, "pay")
        .addEdge("pay", "undo")
        .addEdge("undo", END),
      { ledger, tools: toolRegistry([pay]) },
    );
    const spans = await tracing(() => graph.invoke({ log: [] }, thread("undone")));
    expect(spans.map(({ name }) => name)).toEqual(["execute_tool pay", "write pay:undo", WORKFLOW]);
  });
});

describe("the tracer", () => {
  const everything = async (id: string) => {
    const { graph, input } = nested();
    const { messages } = await graph.invoke(input, thread(id));
    expect(messages.at(-1)?.text).toBe("An answer of a few words.");
  };

  it("that is not there is told nothing", async () => {
    await tracing(async () => {});
    await everything("untraced");
    expect(collector.received()).toEqual([]);
  });

  it.each(["getTracer", "startSpan", "span", "contexts"])("that throws in %s breaks nothing", async (where) => {
    const fail = () => {
      throw new Error("no tracer");
    };
    const broken = new Proxy({}, { get: (_, name) => (name === "disable" ? () => {} : fail) });
    const tracer = { startSpan: where === "span" ? () => broken as Span : fail } as unknown as Tracer;
    const provider: TracerProvider = { getTracer: where === "getTracer" ? fail : () => tracer };
    const before = models.requests();
    if (where === "contexts") context.setGlobalContextManager(broken as ContextManager);
    trace.setGlobalTracerProvider(provider);
    try {
      await everything(`broken ${where}`);
    } finally {
      trace.disable();
      context.disable();
    }
    expect(models.requests() - before).toBe(1);
  });

  it("is told of a call that is still under way at the end of its run", async () => {
    const never = tool(() => new Promise<string>(() => {}), { name: "never", schema: z.object({}) });
    const spans = await tracing(() =>
      run("left", async () => {
        void never.invoke({ type: "tool_call", id: "call_1", name: "never", args: {} });
        // The tool's start is told before its code begins.
        await models.chat().invoke("Hello?");
      }),
    );
    expect(spanCalled(spans, "execute_tool never").attributes).not.toHaveProperty("longhaul.outcome");
    expect(spanCalled(spans, WORKFLOW).attributes["longhaul.outcome"]).toBe("done");
  });
});
