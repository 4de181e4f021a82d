// A pause that code of the user's catches, wherever it stands: it does not get past the node, and nothing behind it is sent.
// And what looks alike and is right: questions beside writes, answers that a schema refuses, steps in edges.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda, RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { Command, END, interrupt, isGraphBubbleUp, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { drainReason, durable, durableGraph, durableNode, durableTool, type Ledger } from "../../src/index.js";
import { oneNode, reset, State, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

type Update = typeof State.Update;
const later = () => Object.assign(new Error("not now"), { status: 429, headers: { "retry-after": "3600" } });

/** Sends, and takes the pause that follows for an error. */
const catching =
  (sent: string[], thrown: () => Error) =>
  async (_state: typeof State.State, runtime: object): Promise<Update> => {
    const pay = async (): Promise<string> => {
      sent.push("pay");
      throw thrown();
    };
    return {
      log: [
        await durable(runtime)
          .step.write("pay", {}, pay)
          .catch(() => "caught"),
      ],
    };
  };

const KINDS: Record<string, (node: ReturnType<typeof catching>) => RunnableLambda<typeof State.State, Update>> = {
  "a lambda": (node) => RunnableLambda.from(node as never),
  "a sequence": (node) =>
    RunnableSequence.from([RunnableLambda.from(node as never), new RunnablePassthrough()]) as never,
  "a binding": (node) => RunnableLambda.from(node as never).withConfig({ tags: ["bound"] }) as never,
  "a retried runnable": (node) => RunnableLambda.from(node as never).withRetry({ stopAfterAttempt: 2 }) as never,
};

describe.each(Object.keys(KINDS))("a pause that %s catches", (kind) => {
  it.each([
    ["for a person", reset],
    ["until a later time", later],
  ])("%s does not get past it, and leaves nothing of it behind", async (until, thrown) => {
    const id = `${kind} ${until}`;
    const sent: string[] = [];
    const builder = new StateGraph(State)
      .addNode("work", KINDS[kind]?.(catching(sent, thrown)) as never)
      .addNode("after", async () => ({ log: ["after"] }))
      .addEdge(START, "work")
      .addEdge("work", "after")
      .addEdge("after", END);
    const graph = durableGraph(builder, { ledger });
    for (const input of [{ log: [] }, null]) {
      const left = await graph.invoke(input, thread(id)).catch((error: unknown) => drainReason(error)?.kind);
      if (thrown === later) expect(left).toBe("due");
      else expect(left).toMatchObject({ log: [], __interrupt__: [{}] });
      expect((await graph.getState(thread(id))).values).toEqual({ log: [] });
    }
    expect(sent).toEqual(["pay"]);
  });
});

it("a fallback of the node itself does not stand in for a write that waits", async () => {
  const sent: string[] = [];
  const node = RunnableLambda.from(async (_state: typeof State.State, runtime) => ({
    log: [
      await durable(runtime).step.write("pay", {}, async (): Promise<string> => {
        sent.push("pay");
        throw later();
      }),
    ],
  })).withFallbacks([RunnableLambda.from(async () => ({ log: ["by the fallback"] }))]);
  const builder = new StateGraph(State)
    .addNode("work", node as never)
    .addEdge(START, "work")
    .addEdge("work", END);
  const graph = durableGraph(builder, { ledger });
  for (const input of [{ log: [] }, null])
    expect(await graph.invoke(input, thread("fallback")).catch((error) => drainReason(error)?.kind)).toBe("due");
  expect(sent).toEqual(["pay"]);
});

describe("a pause caught inside a tool", () => {
  /** A model that calls the tool again, under a new id, until it has heard enough. */
  async function calling(id: string, charge: ReturnType<typeof tool>, handleToolErrors: boolean) {
    const model = async ({ messages }: typeof MessagesAnnotation.State) => {
      if (messages.length > 6) return { messages: [new AIMessage("done")] };
      const call = { type: "tool_call" as const, id: `call_${messages.length}`, name: "charge", args: {} };
      return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
    };
    const builder = new StateGraph(MessagesAnnotation)
      .addNode("model", model)
      .addNode("tools", new ToolNode([charge], { handleToolErrors }))
      .addEdge(START, "model")
      .addConditionalEdges("model", ({ messages }) => (messages.at(-1)?.text === "done" ? END : "tools"), [
        "tools",
        END,
      ])
      .addEdge("tools", "model");
    return durableGraph(builder, { ledger }).invoke({ messages: [new HumanMessage("go")] }, thread(id));
  }
  const described = { name: "charge", description: "Charges.", schema: z.object({}) };

  it.each([true, false])("of its own step pauses the graph (handleToolErrors: %s)", async (handleToolErrors) => {
    const sent: string[] = [];
    const charge = tool(async (_input, config) => {
      const { log } = await catching(sent, reset)({ log: [] }, config);
      return String(log);
    }, described);
    const paused = await calling(`tool ${handleToolErrors}`, charge as never, handleToolErrors);
    expect(paused).toHaveProperty("__interrupt__");
    expect(sent).toEqual(["pay"]);
  });

  it("of a durable tool that it calls pauses the graph", async () => {
    let sent = 0;
    const pay = durableTool(
      tool(
        async (): Promise<string> => {
          sent++;
          throw reset();
        },
        { name: "pay", description: "Pays.", schema: z.object({}) },
      ),
      { version: "1.0.0", effect: "write" },
    );
    const charge = tool(async (_input, config) => {
      const call = { type: "tool_call" as const, id: "inner", name: "pay", args: {} };
      return pay.invoke(call, config).then(String, () => "sorry");
    }, described);
    expect(await calling("nested tool", charge as never, true)).toHaveProperty("__interrupt__");
    expect(sent).toBe(1);
  });
});

it("a question of a graph that a node runs is the node's own: caught, it is asked all the same", async () => {
  const inner = new StateGraph(State)
    .addNode("ask", async () => ({ log: [String(interrupt("pay?"))] }))
    .addEdge(START, "ask")
    .addEdge("ask", END)
    .compile();
  let sent = 0;
  const graph = oneNode(ledger, async (step) => {
    const answer = await inner.invoke({ log: [] }).then(
      ({ log }) => log.at(-1),
      () => "caught",
    );
    return `${answer}: ${await step.write("pay", {}, async () => `po_${++sent}`)}`;
  });
  expect(await graph.invoke({ log: [] }, thread("inner question"))).toMatchObject({ log: [], __interrupt__: [{}] });
  expect(sent).toBe(0);
  const done = await graph.invoke(new Command({ resume: "yes" }), thread("inner question"));
  expect(done.log).toEqual(["yes: po_1"]);
});

describe("a question is no caught one", () => {
  it("when it was asked beside a write", async () => {
    const ask = async () => (await (async () => interrupt("name?"))()) as string;
    let sent = 0;
    const graph = oneNode(ledger, async (step) => {
      const both = await Promise.all([ask(), step.write("pay", {}, async () => `po_${++sent}`)]);
      return both.join(" ");
    });
    expect(await graph.invoke({ log: [] }, thread("beside"))).toMatchObject({ __interrupt__: [{ value: "name?" }] });
    expect((await graph.invoke(new Command({ resume: "ann" }), thread("beside"))).log).toEqual(["ann po_1"]);
    expect(sent).toBe(1);
  });

  it("when its answer was refused by a schema and the code makes do", async () => {
    const graph = oneNode(ledger, async (step) => {
      let name: string;
      try {
        name = interrupt("name?", { responseSchema: z.string() });
      } catch (error) {
        if (error instanceof Error && isGraphBubbleUp(error)) throw error;
        name = "nobody";
      }
      return step.write("greet", { name }, async () => `hello ${name}`);
    });
    await graph.invoke({ log: [] }, thread("schema"));
    expect((await graph.invoke(new Command({ resume: 7 }), thread("schema"))).log).toEqual(["hello nobody"]);
  });
});

describe("steps in a conditional edge", () => {
  it.each([
    ["plain", async (): Promise<Update> => ({ log: ["worked"] })],
    ["durable", durableNode(State, async (): Promise<Update> => ({ log: ["worked"] }))],
  ] as const)("after a %s node are recorded as its own", async (kind, node) => {
    let asked = 0;
    const route = async () => {
      asked++;
      return "after" as const;
    };
    const builder = new StateGraph(State)
      .addNode("work", node)
      .addNode("after", async () => ({ log: ["after"] }))
      .addEdge(START, "work")
      .addConditionalEdges("work", (_state, config) => durable(config).step.read("route", {}, route), ["after"])
      .addEdge("after", END);
    const graph = durableGraph(builder, { ledger });
    expect((await graph.invoke({ log: [] }, thread(`edge ${kind}`))).log).toEqual(["worked", "after"]);
    expect(asked).toBe(1);
    expect(await stepsOf(db, `edge ${kind}`)).toMatchObject([{ name: "route", state: "SUCCEEDED" }]);
  });
});

it("a graph on another server may be a node", () => {
  const remote = new RemoteGraph({ graphId: "elsewhere", url: "http://127.0.0.1:9" });
  const builder = new StateGraph(State)
    .addNode("remote", remote as never)
    .addEdge(START, "remote")
    .addEdge("remote", END);
  expect(Object.keys(durableGraph(builder, { ledger }).nodes)).toContain("remote");
});
