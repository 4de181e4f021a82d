import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { Command, END, interrupt, isGraphBubbleUp, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  DatabaseError,
  drainReason,
  durable,
  durableGraph,
  durableNode,
  durableTool,
  type Ledger,
  openLedger,
  type Step,
  settle,
} from "../../src/index.js";
import { historyOf, oneNode, RETRY, reset, State, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";

let db: TestDatabase;
let ledger: Ledger;
let pool: pg.Pool;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  pool = new pg.Pool({ connectionString: db.url });
});
afterAll(() => pool.end());

/** Past the lease of a step. */
const LEASE_MS = 31_000;
const HOUR_MS = 3_600_000;

/** A ledger that cannot be reached when a write is done: its outcome is not known, and the provider is well. */
function losingReceipts(): Ledger {
  const losing = listeningPool(pool, async (name, send) => {
    if (name === "lh_succeed") throw new DatabaseError("PostgreSQL cannot be reached.");
    return send();
  });
  return openLedger({ pool: losing });
}

/** `a question`: interrupt() before the write. `a doubt`: a write of unknown outcome, without a lookup. */
const PAUSES = ["a question", "a doubt"] as const;
type Pause = (typeof PAUSES)[number];

type Gated = () => Promise<string>;
/** What takes the pause for an error. */
const LAYERS = {
  "a retryPolicy": (gated: Gated) => gated(),
  "withFallbacks()": (gated: Gated) =>
    RunnableLambda.from(gated)
      .withFallbacks([RunnableLambda.from(async () => "by the fallback")])
      .invoke(null),
  "a breaker": (gated: Gated) => gated(),
  "a try/catch": (gated: Gated) =>
    gated().catch((error: unknown) => {
      if (error instanceof Error && isGraphBubbleUp(error)) return "swallowed";
      throw error;
    }),
  "a stack of them all": (gated: Gated): Promise<string> =>
    LAYERS["a try/catch"](() => LAYERS["withFallbacks()"](gated) as Promise<string>),
} as const;
type Layer = keyof typeof LAYERS;
const LAYER_NAMES = Object.keys(LAYERS) as Layer[];

interface Counts {
  ran: number;
  sent: number;
}

/** A node that pays behind a pause, inside what takes the pause for an error. */
function paying(on: Ledger, counts: Counts, pause: Pause, layer: Layer) {
  const has = (name: Layer) => layer === name || layer === "a stack of them all";
  const options = has("a breaker") ? { breaker: { threshold: 1, cooldownMs: HOUR_MS } } : {};
  const gated = async (step: Step) => {
    if (pause === "a question") interrupt("pay?");
    return step.write("pay", {}, async () => `po_${++counts.sent}`, options);
  };
  return oneNode(
    on,
    (step) => {
      counts.ran++;
      return LAYERS[layer](() => gated(step));
    },
    has("a retryPolicy") ? { retryPolicy: RETRY } : {},
  );
}

const threadRow = async (id: string) =>
  (await db.sql("select state, error from longhaul.threads where thread_id = $1", [id]))[0];
const failuresOf = async (id: string) =>
  db.sql("select failures, lookups from longhaul.steps where thread_id = $1", [id]);
const breakers = () => db.sql("select name from longhaul.breakers");
const keyOf = async (id: string) => (await stepsOf(db, id))[0]?.key ?? "";
const IN_DOUBT = ["RUNNING", "NEEDS_RECONCILIATION"];

/** Code of the user's that goes on after interrupt(): LangGraph cannot ask then, and the pack does not let it pass. */
const CATCHING: readonly Layer[] = ["withFallbacks()", "a try/catch", "a stack of them all"];

describe("INT-06: a question of interrupt() that was caught", () => {
  it.each(CATCHING)("INT-06: by %s is an error that says so, and nothing behind it is done", async (layer) => {
    const counts: Counts = { ran: 0, sent: 0 };
    const graph = paying(ledger, counts, "a question", layer);
    await expect(graph.invoke({ log: [] }, thread(`caught, ${layer}`))).rejects.toMatchObject({
      code: "STEP_USAGE",
      message: expect.stringContaining("interrupt()"),
    });
    expect(counts).toEqual({ ran: 1, sent: 0 });
    // Mended, the thread goes on: the question is asked, and answered.
    const mended = paying(ledger, counts, "a question", "a breaker");
    expect(await mended.invoke(null, thread(`caught, ${layer}`))).toMatchObject({ __interrupt__: [{ value: "pay?" }] });
    expect((await mended.invoke(new Command({ resume: true }), thread(`caught, ${layer}`))).log).toEqual(["po_1"]);
  });

  it("INT-06: does not let a write of a plain node pass either", async () => {
    let sent = 0;
    const builder = new StateGraph(State)
      .addNode("node", async (_state, runtime) => {
        const { step } = durable(runtime);
        try {
          interrupt("pay?");
        } catch {
          // Whatever this code takes it for.
        }
        return { log: [await step.write("pay", {}, async () => `po_${++sent}`)] };
      })
      .addEdge(START, "node")
      .addEdge("node", END);
    await expect(durableGraph(builder, { ledger }).invoke({ log: [] }, thread("caught, plain"))).rejects.toMatchObject({
      code: "STEP_USAGE",
    });
    expect(sent).toBe(0);
  });
});

describe.each(PAUSES)("INT-06: %s is no error", (pause) => {
  const layers = LAYER_NAMES.filter((layer) => pause === "a doubt" || !CATCHING.includes(layer));
  it.each(layers)("INT-06: %s neither skips it, nor does anything again, nor reports a failure", async (layer) => {
    const id = `${pause}, ${layer}`;
    const counts: Counts = { ran: 0, sent: 0 };
    const before = pause === "a doubt" ? 1 : 0;
    if (pause === "a doubt") {
      const cut = await paying(losingReceipts(), counts, pause, layer)
        .invoke({ log: [] }, thread(id))
        .catch(drainReason);
      expect(cut).toMatchObject({ kind: "unrecorded" });
      expect(counts).toEqual({ ran: 1, sent: 1 });
      await db.advance(LEASE_MS);
    }
    const graph = paying(ledger, counts, pause, layer);
    counts.ran = 0;
    const paused = await graph.invoke(before === 0 ? { log: [] } : null, thread(id));
    expect(paused).toMatchObject({ log: [], __interrupt__: [{}] });
    const { tasks, next } = await graph.getState(thread(id));
    expect(next).toEqual(["node"]);
    expect(tasks.flatMap(({ interrupts }) => interrupts)).toHaveLength(1);
    expect(tasks.map(({ error }) => error)).toEqual([undefined]);
    expect(counts).toEqual({ ran: 1, sent: before });
    expect(await threadRow(id)).toEqual({ state: "waiting", error: null });
    expect(await historyOf(db, id)).toEqual(before === 0 ? [] : IN_DOUBT);
    expect(await failuresOf(id)).toEqual(before === 0 ? [] : [{ failures: 0, lookups: 0 }]);
    expect(await breakers()).toEqual([]);
    // The answer is taken, and the write is done once.
    if (pause === "a doubt")
      await settle(ledger, { idempotencyKey: await keyOf(id), by: "ann", outcome: "happened", receipt: "po_1" });
    const done = await graph.invoke(pause === "a question" ? new Command({ resume: true }) : null, thread(id));
    expect(done.log).toEqual(["po_1"]);
    expect(counts).toEqual({ ran: 2, sent: 1 });
    expect(await stepsOf(db, id)).toMatchObject([{ state: "SUCCEEDED", attempt: 1 }]);
    expect(await breakers()).toEqual([]);
  });
});

describe("INT-06: a pause that code of the user's swallows", () => {
  it("INT-06: opens no other step in the node, and is asked again", async () => {
    const sent: string[] = [];
    const graph = oneNode(ledger, async (step) => {
      const pay = async (): Promise<string> => {
        sent.push("pay");
        throw reset();
      };
      await step.write("pay", {}, pay).catch(() => undefined);
      return step.write("ship", {}, async () => `shipped ${sent.push("ship")}`).catch(() => "swallowed");
    });
    expect(await graph.invoke({ log: [] }, thread("two"))).toMatchObject({ log: [], __interrupt__: [{}] });
    expect(await graph.invoke(null, thread("two"))).toMatchObject({ log: [], __interrupt__: [{}] });
    expect(sent).toEqual(["pay"]);
    expect(await stepsOf(db, "two")).toMatchObject([{ name: "pay", state: "NEEDS_RECONCILIATION", attempt: 1 }]);
  });

  it("INT-06: does not get past a plain node with durable()", async () => {
    let sent = 0;
    const builder = new StateGraph(State)
      .addNode("node", async (_state, runtime) => {
        const { step } = durable(runtime);
        const pay = async (): Promise<string> => {
          sent++;
          throw reset();
        };
        return { log: [await step.write("pay", {}, pay).catch(() => "swallowed")] };
      })
      .addNode("after", async () => ({ log: ["after"] }))
      .addEdge(START, "node")
      .addEdge("node", "after");
    const graph = durableGraph(builder, { ledger });
    expect(await graph.invoke({ log: [] }, thread("plain"))).toMatchObject({ log: [], __interrupt__: [{}] });
    expect(sent).toBe(1);
    expect(await threadRow("plain")).toEqual({ state: "waiting", error: null });
  });
});

const TOOLS = {
  "a question": "none",
  "a question in a recorded read": "read",
  "a doubt": "write",
} as const;
type Tool = keyof typeof TOOLS;

function chargeTool(counts: Counts, kind: Tool) {
  const charge = async () => {
    if (kind !== "a doubt") interrupt("charge?");
    counts.sent++;
    if (kind === "a doubt") throw reset();
    return "charged";
  };
  const plain = tool(charge, { name: "charge", description: "Charges.", schema: z.object({}) });
  const version = { none: "1.0.0", read: "1.1.0", write: "2.0.0" }[TOOLS[kind] as string] ?? "1.0.0";
  return durableTool(plain, { version, effect: TOOLS[kind] });
}

/** A tools node written by hand: whatever the tool throws becomes a message. */
function answering(charge: ReturnType<typeof chargeTool>, counts: Counts) {
  return async ({ messages }: typeof MessagesAnnotation.State) => {
    counts.ran++;
    const [call = { name: "", args: {} }] = (messages.at(-1) as AIMessage).tool_calls ?? [];
    try {
      const answer: ToolMessage = await charge.invoke({ ...call, type: "tool_call" });
      return { messages: [answer] };
    } catch (error) {
      const content = `Error: ${error}\n Please fix your mistakes.`;
      return { messages: [new ToolMessage({ content, status: "error", tool_call_id: call.id ?? "" })] };
    }
  };
}

/** A model that calls a tool until it hears that the charge went through, four times at most. */
function agent(counts: Counts, kind: Tool, toolsNode: "ToolNode" | "durableNode" | "plain node") {
  const heard: BaseMessage[] = [];
  const charge = chargeTool(counts, kind);
  const model = async ({ messages }: typeof MessagesAnnotation.State) => {
    const last = messages.at(-1);
    if (last !== undefined) heard.push(last);
    if (last?.text === "charged" || heard.length > 4) return { messages: [new AIMessage("done")] };
    const call = { type: "tool_call" as const, id: `call_${heard.length}`, name: "charge", args: {} };
    return { messages: [new AIMessage({ content: "", tool_calls: [call] })] };
  };
  const byHand = answering(charge, counts);
  const tools = {
    ToolNode: new ToolNode([charge]),
    durableNode: RunnableLambda.from(durableNode(MessagesAnnotation, byHand)),
    "plain node": RunnableLambda.from(byHand),
  }[toolsNode];
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", tools, { retryPolicy: RETRY })
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) => (messages.at(-1)?.text === "done" ? END : "tools"), ["tools", END])
    .addEdge("tools", "model");
  return { heard, graph: durableGraph(builder, { ledger }) };
}

/** What the model has heard, by type. */
const typesOf = (messages: readonly BaseMessage[]) => messages.map(({ type }) => type);

describe("INT-06: a tool that pauses", () => {
  it.each([
    ["a question", "ToolNode"],
    ["a question in a recorded read", "ToolNode"],
    ["a doubt", "ToolNode"],
    ["a doubt", "durableNode"],
    ["a doubt", "plain node"],
  ] as const)("INT-06: by %s under a %s: the model hears of no error, and does not call again", async (kind, node) => {
    const id = `tool, ${kind}, ${node}`;
    const counts: Counts = { ran: 0, sent: 0 };
    const { heard, graph } = agent(counts, kind, node);
    const paused = await graph.invoke({ messages: [new HumanMessage("go")] }, thread(id));
    expect(typesOf(heard)).toEqual(["human"]);
    expect(paused).toMatchObject({ __interrupt__: [{}] });
    expect(typesOf(paused.messages)).toEqual(["human", "ai"]);
    expect(counts.sent).toBe(kind === "a doubt" ? 1 : 0);
    expect(await threadRow(id)).toEqual({ state: "waiting", error: null });
    expect(await historyOf(db, id)).toEqual(kind === "a doubt" ? IN_DOUBT : []);
    const said = { by: "ann", outcome: "happened", receipt: "charged" } as const;
    if (kind === "a doubt") await settle(ledger, { idempotencyKey: await keyOf(id), ...said });
    const done = await graph.invoke(kind === "a doubt" ? null : new Command({ resume: true }), thread(id));
    expect(typesOf(done.messages)).toEqual(["human", "ai", "tool", "ai"]);
    expect(heard.at(-1)).toMatchObject({ content: "charged", tool_call_id: "call_1" });
    expect((heard.at(-1) as ToolMessage).status).not.toBe("error");
    expect(counts.sent).toBe(1);
  });
});
