import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel, durableNode, durableTool, type Step, type StepEvent } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { startWorld, type World } from "../support/world.js";

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const TURNS = 12;

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** A one-node graph that fails after its steps as often as it is told to, and tells of every step. */
function oneNode(work: (step: Step) => Promise<string[]>, failures = 0) {
  const events: StepEvent[] = [];
  let left = failures;
  const builder = new StateGraph(State)
    .addNode(
      "node",
      durableNode(State, async (_state, { step }) => {
        const log = await work(step);
        if (left-- > 0) throw new Error("dies after its steps");
        return { log };
      }),
    )
    .addEdge(START, "node")
    .addEdge("node", END);
  return { events, graph: durableGraph(builder, { ledger: db.openLedger({ onStep: (event) => events.push(event) }) }) };
}

const get = (what: string) => fetch(`${world.url}/${what}?thread=host`).then(async (response) => response.text());
const keysOf = (events: readonly StepEvent[], type: StepEvent["type"]) =>
  events.filter((event) => event.type === type).map(({ key }) => key);

describe("DSE-13: identity of steps", () => {
  it.each<[string, (step: Step) => Promise<string[]>]>([
    ["of two names", (step) => Promise.all([step.read("a", {}, () => get("a")), step.read("b", {}, () => get("b"))])],
    [
      "of one name with keys",
      (step) => Promise.all(["a", "b"].map((key) => step.read("get", { key }, () => get(key), { key }))),
    ],
  ])("DSE-13: two parallel GETs %s to one host have distinct ids, the same on every replay", async (name, work) => {
    const { graph, events } = oneNode(work, 3);
    const asked = world.requests.length;
    await expect(graph.invoke({ log: [] }, thread(name))).rejects.toThrow("dies after its steps");
    for (let i = 0; i < 2; i++) await expect(graph.invoke(null, thread(name))).rejects.toThrow("dies");
    const { log } = await graph.invoke(null, thread(name));
    expect(log.map((text) => (JSON.parse(text) as { text: string }).text[0])).toEqual(["a", "b"]);
    const recorded = keysOf(events, "recorded").sort();
    expect(new Set(recorded).size).toBe(2);
    expect(keysOf(events, "replayed").sort()).toEqual([...recorded, ...recorded, ...recorded].sort());
    expect(world.requests.length - asked).toBe(2);
  });

  it("DSE-13: a 12-turn agent loop that dies and is resumed after every step keeps all its ids", async () => {
    const events: StepEvent[] = [];
    const calls = { model: 0, tool: [] as number[] };
    const died = new Set<number>();
    /** A new process: nothing but the database is kept. */
    const agent = () => {
      const search = tool(
        async ({ turn }: { turn: number }) => {
          calls.tool.push(turn);
          return `found ${turn}`;
        },
        { name: "search", description: "Searches.", schema: z.object({ turn: z.number() }) },
      );
      const model = durableModel(new LoopingModel(() => calls.model++));
      const builder = new StateGraph(MessagesAnnotation)
        .addNode("agent", async ({ messages }) => {
          const answer = await model.invoke(messages);
          if (!died.has(messages.length)) {
            died.add(messages.length);
            throw new Error("the process dies");
          }
          return { messages: [answer] };
        })
        .addNode("tools", new ToolNode([durableTool(search, { version: "1.0.0", effect: "read" })]))
        .addEdge(START, "agent")
        .addConditionalEdges("agent", ({ messages }) => (hasCall(messages.at(-1)) ? "tools" : END), ["tools", END])
        .addEdge("tools", "agent");
      return durableGraph(builder, {
        ledger: db.openLedger({ onStep: (event) => events.push(event), maxConnections: 2 }),
      });
    };
    const config = {
      ...thread("agent"),
      interruptAfter: ["agent", "tools"] as ("agent" | "tools")[],
      recursionLimit: 50,
    };
    await expect(agent().invoke({ messages: [new HumanMessage("go")] }, config)).rejects.toThrow("the process dies");
    let graph = agent();
    for (let resumes = 0; (await graph.getState(config)).next.length > 0; resumes++) {
      expect(resumes).toBeLessThan(4 * TURNS);
      await graph.invoke(null, config).catch((error: Error) => expect(error.message).toBe("the process dies"));
      if (resumes % 6 === 5) graph = agent();
    }
    expect(calls.tool).toEqual(Array.from({ length: TURNS }, (_, turn) => turn));
    expect(calls.model).toBe(TURNS + 1);
    const recorded = keysOf(events, "recorded");
    expect(new Set(recorded).size).toBe(2 * TURNS + 1);
    // Every model call was met once more, after the death that followed it, under the id of before.
    const models = events.filter(({ kind, type }) => kind === "llm" && type === "recorded").map(({ key }) => key);
    expect(keysOf(events, "replayed")).toEqual(models);
    const rows = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = 'agent' order by seq",
    );
    expect(rows.map(({ key }) => key)).toEqual(recorded);
  });

  it.each(["read", "write"] as const)(
    "DSE-13: an explicit id that a %s used already is refused for other arguments",
    async (verb) => {
      const sent: number[] = [];
      const send = async (n: number) => String(sent.push(n));
      const { graph } = oneNode(async (step) => [
        await step[verb]("send", { n: 1 }, () => send(1), { key: "mine" }),
        await step[verb]("send", { n: 2 }, () => send(2), { key: "mine" }),
      ]);
      await expect(graph.invoke({ log: [] }, thread(`reused ${verb}`))).rejects.toMatchObject({
        code: "INPUT_CONFLICT",
        status: 409,
      });
      expect(sent).toEqual([1]);
    },
  );

  it("DSE-13: an explicit id of a write that comes back in a later run with other arguments asks a person", async () => {
    const sent: number[] = [];
    let n = 1;
    const { graph } = oneNode(async (step) => [
      await step.write("send", { n }, async () => String(sent.push(n)), { key: "order-7" }),
    ]);
    await graph.invoke({ log: [] }, thread("later"));
    expect(await graph.invoke({ log: [] }, thread("later"))).toMatchObject({ log: ["1", "1"] });
    n = 2;
    expect(await graph.invoke({ log: [] }, thread("later"))).toHaveProperty("__interrupt__");
    expect(sent).toEqual([1]);
  });
});

function hasCall(message: BaseMessage | undefined): boolean {
  return AIMessage.isInstance(message) && (message.tool_calls?.length ?? 0) > 0;
}

/** A model that calls `search` twelve times and then stops. */
class LoopingModel extends BaseChatModel {
  constructor(readonly called: () => void) {
    super({});
  }

  override _llmType(): string {
    return "looping";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    this.called();
    const turn = messages.filter((message) => ToolMessage.isInstance(message)).length;
    const call = { type: "tool_call" as const, id: `call_${turn}`, name: "search", args: { turn } };
    const message = new AIMessage({ content: `turn ${turn}`, tool_calls: turn < TURNS ? [call] : [] });
    return { generations: [{ text: message.text, message }] };
  }
}
