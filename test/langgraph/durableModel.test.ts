import { HumanMessage } from "@langchain/core/messages";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel, durableNode, durableTool } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";

let db: TestDatabase;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  models = await modelServer();
});

const State = Annotation.Root({ out: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** Runs a node that fails once after its work, then again: what it asked the model, and what it got both times. */
async function twice(
  threadId: string,
  work: () => Promise<string>,
): Promise<{ first: string; second: string; requests: number }> {
  const seen: string[] = [];
  let fail = true;
  const graph = durableGraph(
    new StateGraph(State)
      .addNode("ask", async () => {
        const got = await work();
        seen.push(got);
        if (fail) throw new Error("the node dies after the call");
        return { out: [got] };
      })
      .addEdge(START, "ask")
      .addEdge("ask", END),
    { ledger: db.openLedger() },
  );
  const before = models.requests();
  await expect(graph.invoke({ out: [] }, thread(threadId))).rejects.toThrow("the node dies");
  const asked = models.requests() - before;
  fail = false;
  await graph.invoke(null, thread(threadId));
  expect(models.requests() - before).toBe(asked);
  return { first: seen[0] ?? "", second: seen[1] ?? "", requests: asked };
}

describe("a durable model", () => {
  it("answers an invoke from the record, with usage and a mark that it is a replay", async () => {
    const model = durableModel(models.chat());
    const marks: unknown[] = [];
    const { first, second, requests } = await twice("invoke", async () => {
      const message = await model.invoke("What?");
      marks.push(message.response_metadata["longhaul_replay"]);
      return JSON.stringify([message.content, message.usage_metadata, message.id]);
    });
    expect(requests).toBe(1);
    expect(second).toBe(first);
    expect(marks).toEqual([undefined, true]);
    const [row] = await db.sql(
      "select model, input_tokens, output_tokens, cost_nano_usd, attempt, kind, state from longhaul.steps where thread_id = 'invoke'",
    );
    expect(row).toMatchObject({
      input_tokens: "1000",
      output_tokens: "500",
      attempt: 1,
      kind: "llm",
      state: "SUCCEEDED",
    });
    // gpt-4.1-mini: 0.40 and 1.60 dollars a million tokens.
    expect(BigInt(String(row?.["cost_nano_usd"]))).toBe(1_200_000n);
  });

  it("answers a stream from the record, by the same chunks' sum", async () => {
    const model = durableModel(models.chat({ streamUsage: true }));
    const { first, second, requests } = await twice("stream", async () => {
      let text = "";
      for await (const chunk of await model.stream("Tell me")) text += chunk.content;
      return text;
    });
    expect(requests).toBe(1);
    expect(first).toBe("An answer of a few words.");
    expect(second).toBe(first);
    const [row] = await db.sql("select output_tokens from longhaul.steps where thread_id = 'stream'");
    expect(row?.["output_tokens"]).toBe("500");
  });

  it("records calls through bindTools, a prompt pipe, structured output, batch and event streams", async () => {
    const model = durableModel(models.chat());
    const pay = tool(async () => "paid", {
      name: "pay",
      description: "pays",
      schema: z.object({ amount: z.number() }),
    });
    const structured = model.withStructuredOutput(z.object({ city: z.string() }), { method: "jsonSchema" });
    const { first, second, requests } = await twice("ways", async () => {
      const bound = await model.bindTools([pay]).invoke("please pay");
      const piped = await ChatPromptTemplate.fromTemplate("{q}").pipe(model).invoke({ q: "one" });
      const parsed = await structured.invoke("a city");
      const batch = await model.batch(["two", "three"]);
      let events = "";
      for await (const event of model.streamEvents("four", { version: "v2" })) {
        if (event.event === "on_chat_model_stream") events += event.data.chunk.content;
      }
      return JSON.stringify([bound.tool_calls, piped.content, parsed, batch.map((m) => m.content), events]);
    });
    expect(requests).toBe(6);
    expect(JSON.parse(first)[2]).toEqual({ city: "Paris" });
    expect(second).toBe(first);
  });

  it("tells equal calls of one node apart, and pays for each", async () => {
    const model = durableModel(models.chat());
    const { requests } = await twice("equal", async () => {
      const answers = await Promise.all([model.invoke("same"), model.invoke("same"), model.invoke("same")]);
      return answers.map((a) => a.content).join();
    });
    expect(requests).toBe(3);
  });

  it("records v3 event streams, which run without callbacks", async () => {
    const model = durableModel(models.chat());
    const { first, second, requests } = await twice("v3", async () => {
      const stream = model.streamEvents("five", { version: "v3" } as never) as unknown as { text: PromiseLike<string> };
      return String(await stream.text);
    });
    expect(requests).toBe(1);
    expect(first).toContain("An answer");
    expect(second).toBe(first);
  });

  it("is the plain model outside a durable graph", async () => {
    const before = models.requests();
    const model = durableModel(models.chat());
    expect((await model.invoke("plain")).content).toBe("An answer of a few words.");
    expect((await model.invoke("plain")).content).toBe("An answer of a few words.");
    expect(models.requests() - before).toBe(2);
  });

  it("gives its tokens to LangGraph's message stream, on a replay too", async () => {
    const model = durableModel(models.chat());
    let fail = true;
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode(
          "think",
          durableNode(MessagesAnnotation, async (s) => {
            const message = await model.invoke(s.messages);
            if (fail) throw new Error("dies");
            return { messages: [message] };
          }),
        )
        .addEdge(START, "think")
        .addEdge("think", END),
      { ledger: db.openLedger() },
    );
    const read = async (input: { messages: HumanMessage[] } | null) => {
      let text = "";
      for await (const [chunk] of await graph.stream(input, { ...thread("tokens"), streamMode: "messages" }))
        text += chunk.content;
      return text;
    };
    await expect(read({ messages: [new HumanMessage("hi")] })).rejects.toThrow("dies");
    fail = false;
    expect(await read(null)).toBe("An answer of a few words.");
  });
});

describe("a durable tool", () => {
  let paid = 0;
  beforeEach(() => {
    paid = 0;
  });
  const payTool = (effect: "read" | "write") =>
    durableTool(
      tool(
        async ({ amount }: { amount: number }) => {
          paid++;
          return { receipt: `r${amount}` };
        },
        { name: "pay", description: "pays", schema: z.object({ amount: z.number() }) },
      ),
      { version: effect === "write" ? "1.0.0" : "2.0.0", effect },
    );

  it("keeps the tool's type, and is recorded by its tool call id under a ToolNode", async () => {
    const model = durableModel(models.chat());
    const pay = payTool("write");
    let fail = true;
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("think", async (s) => ({ messages: [await model.bindTools([pay]).invoke(s.messages)] }))
        .addNode("tools", new ToolNode([pay]))
        .addNode("after", async () => {
          if (fail) throw new Error("dies after the tool");
          return {};
        })
        .addEdge(START, "think")
        .addEdge("think", "tools")
        .addEdge("tools", "after")
        .addEdge("after", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ messages: [new HumanMessage("pay now")] }, thread("tool"))).rejects.toThrow(
      "dies after",
    );
    fail = false;
    const { messages } = await graph.invoke(null, thread("tool"));
    expect(messages.at(-1)?.content).toBe('{"receipt":"r1"}');
    expect(paid).toBe(1);
    const [row] = await db.sql(
      "select call_site, version, kind, state from longhaul.steps where thread_id = 'tool' and kind = 'tool'",
    );
    expect(row).toEqual({ call_site: "tool-call:call_1", version: "1.0.0", kind: "tool", state: "SUCCEEDED" });
  });

  it("of unknown outcome pauses the graph: no error message reaches the model, which would call again", async () => {
    const failing = durableTool(
      tool(
        async () => {
          paid++;
          throw new Error("socket closed");
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
    await graph.invoke({ messages: [new HumanMessage("pay now")] }, thread("doubt"));
    const state = await graph.getState(thread("doubt"));
    expect(state.tasks[0]?.interrupts[0]?.value).toMatchObject({ kind: "NEEDS_RECONCILIATION", name: "pay" });
    expect(state.values.messages).toHaveLength(2);
    expect(paid).toBe(1);
  });

  it("may be called by a node, in parallel branches of Send", async () => {
    const read = payTool("read");
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "branch",
          durableNode(State, async () => ({ out: [String((await read.invoke({ amount: 1 })).receipt)] })),
        )
        .addConditionalEdges(START, () => [new Send("branch", { out: [] }), new Send("branch", { out: [] })], [
          "branch",
        ])
        .addEdge("branch", END),
      { ledger: db.openLedger() },
    );
    expect((await graph.invoke({ out: [] }, thread("branches"))).out).toEqual(["r1", "r1"]);
    expect(paid).toBe(2);
  });
});

describe("a durable model inside a step", () => {
  it("is refused: its call is a step already, and a crash in it would leave the outer one in doubt", async () => {
    const model = durableModel(models.chat());
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (_s, { step }) => ({
            out: [await step.read("x", 1, async () => String((await model.invoke("q")).content))],
          })),
        )
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ out: [] }, thread("nested"))).rejects.toMatchObject({ code: "NESTED_STEP" });
  });
});

describe("RET-01: retries of a model call", () => {
  it("happen in one layer: the model's own are taken over, and the cap is the number of requests", async () => {
    const down = await modelServer({ error: { message: "overloaded", type: "server_error" }, status: 503 });
    const model = durableModel(down.chat({ maxRetries: 6 }), { retry: { failures: 3 } });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", async () => ({ out: [String((await model.invoke("anything")).content)] }))
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ out: [] }, thread("ret-01"))).rejects.toThrow();
    expect(down.requests()).toBe(3);
    const [row] = await db.sql("select state, attempt from longhaul.steps where thread_id = 'ret-01'");
    expect(row).toEqual({ state: "READY", attempt: 3 });
  });
});
