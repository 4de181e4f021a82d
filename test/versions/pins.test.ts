// A thread that sleeps while its tools change: what takes all that was taken goes on and says so, what may break waits for a
// person, and nothing is upgraded in silence.
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  approvalsOf,
  type DurableOptions,
  decide,
  durableGraph,
  durableNode,
  durableTool,
  type Ledger,
  operation,
  toolRegistry,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

/** What the mail tool of a build is like, and what it was called with. */
interface Mail {
  readonly version: string;
  readonly schema: z.ZodObject;
  readonly options?: object;
}
const V1: Mail = { version: "1.0.0", schema: z.object({ to: z.string() }) };
const WIDER: Mail = { version: "1.1.0", schema: z.object({ to: z.string(), cc: z.string().optional() }) };
const V2: Mail = { version: "2.0.0", schema: z.object({ recipient: z.string() }) };
const MIGRATE = { migrate: { input: (args: unknown) => ({ recipient: (args as { to: string }).to }) } };

let calls: string[] = [];
function mailTool({ version, schema, options = {} }: Mail) {
  const plain = tool(
    async (args: Record<string, unknown>) => {
      calls.push(`${version} ${JSON.stringify(args)}`);
      return `sent by ${version}`;
    },
    { name: "mail", description: "Mails.", schema },
  );
  return durableTool(plain, { version, effect: "write", ...options });
}

const call = (id: string) => new AIMessage({ content: "", tool_calls: [{ id, name: "mail", args: { to: "ann" } }] });

/** Mails, sleeps, and mails again as the model said before the sleep. */
function build(mail: Mail, { older = [], ...options }: { older?: Mail[] } & Partial<DurableOptions> = {}) {
  const registry = toolRegistry([mailTool(mail), ...older.map(mailTool)]);
  const builder = new StateGraph(MessagesAnnotation)
    .addNode("first", new ToolNode([...registry.tools]))
    .addNode("sleep", () => {
      interrupt("asleep");
      return { messages: [call("call_2")] };
    })
    .addNode("second", new ToolNode([...registry.tools]))
    .addEdge(START, "first")
    .addEdge("first", "sleep")
    .addEdge("sleep", "second")
    .addEdge("second", END);
  return durableGraph(builder, { ledger, tools: registry, ...options });
}

async function asleep(id: string, mail: Mail = V1, options: Partial<DurableOptions> = {}) {
  calls = [];
  await build(mail, options).invoke({ messages: [call("call_1")] }, thread(id));
  calls = [];
}

// Each graph has nodes of its own, which a Command for all of them cannot know.
const wake = new Command({ resume: "morning" }) as never;
const lastMessage = ({ messages }: { messages: BaseMessage[] }) => messages.at(-1);
const cardOf = async (id: string) => (await approvalsOf(ledger, { threadId: id, status: "pending" }))[0];
const history = async (id: string) =>
  (
    await db.sql<{ line: string }>(
      "select from_version || ' -> ' || to_version || ': ' || verdict || ' by ' || by_whom as line from longhaul.pin_events where thread_id = $1 order by id",
      [id],
    )
  ).map(({ line }) => line);

async function say(id: string, choice?: string) {
  const card = await cardOf(id);
  const args = card?.args as { choice: string };
  const decision =
    choice === undefined
      ? ({ status: "approved" } as const)
      : ({ status: "edited", args: { ...args, choice } } as const);
  return decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision });
}

describe("a thread that slept while its tool changed", () => {
  it("goes on with a version that takes all that was taken, and says so", async () => {
    await asleep("wider");
    await build(WIDER).invoke(wake, thread("wider"));
    expect(calls).toEqual(['1.1.0 {"to":"ann"}']);
    expect(await history("wider")).toEqual(["1.0.0 -> 1.1.0: compatible by run"]);
    expect(await cardOf("wider")).toBeUndefined();
  });

  it("waits for a person where the new version may not take it, and the card says what changed", async () => {
    await asleep("breaking");
    const left = await build(V2).invoke(wake, thread("breaking"));
    expect(left).toHaveProperty("__interrupt__");
    expect(calls).toEqual([]);
    const card = await cardOf("breaking");
    expect(card).toMatchObject({ action: "use another version of mail", node: "second" });
    expect(card?.args).toMatchObject({ tool: "mail", from: "1.0.0", to: "2.0.0", choice: "accept" });
    expect((card?.args as { differences: string[] } | undefined)?.differences).toContain(
      'breaking: /input/to property: "there" -> "gone"',
    );
    expect(await history("breaking")).toEqual([]);
    // Asked again it is the same card.
    await build(V2).invoke(null, thread("breaking"));
    expect((await approvalsOf(ledger, { threadId: "breaking" })).map(({ id }) => id)).toEqual([card?.id]);
  });

  it("goes on through `migrate` when a person lets it", async () => {
    await asleep("migrated");
    const graph = build({ ...V2, options: MIGRATE });
    await graph.invoke(wake, thread("migrated"));
    expect(calls).toEqual([]);
    await say("migrated");
    const done = await graph.invoke(null, thread("migrated"));
    expect(calls).toEqual(['2.0.0 {"recipient":"ann"}']);
    expect(lastMessage(done)?.text).toBe("sent by 2.0.0");
    expect(await history("migrated")).toEqual(["1.0.0 -> 2.0.0: migrated by ann"]);
  });

  it("keeps the version that it was begun with, while new threads get the new one", async () => {
    await asleep("kept");
    const graph = build(V2, { older: [V1] });
    await graph.invoke(wake, thread("kept"));
    await say("kept", "keep");
    await graph.invoke(null, thread("kept"));
    expect(calls).toEqual(['1.0.0 {"to":"ann"}']);
    expect(await history("kept")).toEqual(["1.0.0 -> 2.0.0: kept by ann"]);
    const fresh = new AIMessage({ content: "", tool_calls: [{ id: "c", name: "mail", args: { recipient: "bob" } }] });
    await graph.invoke({ messages: [fresh] }, thread("fresh"));
    expect(calls.at(-1)).toBe('2.0.0 {"recipient":"bob"}');
  });

  it("leaves the call out, and the model is told", async () => {
    await asleep("skipped");
    await build(V2).invoke(wake, thread("skipped"));
    await say("skipped", "skip");
    const done = await build(V2).invoke(null, thread("skipped"));
    expect(calls).toEqual([]);
    expect(lastMessage(done)).toBeInstanceOf(ToolMessage);
    expect(lastMessage(done)?.text).toContain("left out by ann");
  });

  it.each(["abort", "reject"])("ends with an error and stays as it was: %s", async (how) => {
    const id = `ended by ${how}`;
    await asleep(id);
    await build(V2).invoke(wake, thread(id));
    if (how === "abort") await say(id, "abort");
    else
      await decide(ledger, { approvalId: (await cardOf(id))?.id ?? "", by: "ann", decision: { status: "rejected" } });
    await expect(build(V2).invoke(null, thread(id))).rejects.toMatchObject({ code: "TOOL_DRIFT" });
    expect(calls).toEqual([]);
    expect(await history(id)).toEqual([]);
    // The old build still runs it.
    await build(V1).invoke(null, thread(id));
    expect(calls).toEqual(['1.0.0 {"to":"ann"}']);
  });

  it("a choice that is not offered is refused, and the card stays", async () => {
    await asleep("not offered");
    await build(V2).invoke(wake, thread("not offered"));
    await expect(say("not offered", "migrate")).rejects.toThrow("do not fit");
    await expect(say("not offered", "keep")).rejects.toThrow("do not fit");
    expect((await cardOf("not offered"))?.status).toBe("pending");
  });

  it.each([
    ["throws", { input: () => JSON.parse("{") }],
    ["does not fit", { input: () => ({ to: "ann" }) }],
  ])("a `migrate` that %s ends the run before anything is sent", async (what, migrate) => {
    const id = `migrate ${what}`;
    await asleep(id);
    const graph = build({ ...V2, options: { migrate } });
    await graph.invoke(wake, thread(id));
    await say(id);
    await expect(graph.invoke(null, thread(id))).rejects.toMatchObject({ code: "TOOL_DRIFT" });
    expect(calls).toEqual([]);
  });

  it("a major version is not compatible, whatever its schema says", async () => {
    await asleep("major");
    await build({ ...V1, version: "6.0.0" }).invoke(wake, thread("major"));
    expect((await cardOf("major"))?.args).toMatchObject({
      differences: ["breaking: / version: 1.0.0 -> 6.0.0"],
    });
  });

  it("is asked again what was allowed for the tool as it was", async () => {
    const gated = (mail: Mail, more: object = {}) => ({ ...mail, options: { ...more, approval: {} } });
    await asleep("stale", V1);
    await build(gated(V1)).invoke(wake, thread("stale"));
    const first = await cardOf("stale");
    expect(first?.action).toBe("mail");
    await decide(ledger, { approvalId: first?.id ?? "", by: "ann", decision: { status: "approved" } });
    const next = build(gated(V2, MIGRATE));
    await next.invoke(null, thread("stale"));
    await say("stale");
    await next.invoke(null, thread("stale"));
    expect(calls).toEqual([]);
    expect(await cardOf("stale")).toMatchObject({ action: "mail", args: { recipient: "ann" } });
    expect((await approvalsOf(ledger, { threadId: "stale" })).find(({ id }) => id === first?.id)?.status).toBe(
      "superseded",
    );
    await decide(ledger, {
      approvalId: (await cardOf("stale"))?.id ?? "",
      by: "ann",
      decision: { status: "approved" },
    });
    await next.invoke(null, thread("stale"));
    expect(calls).toEqual(['2.0.0 {"recipient":"ann"}']);
  });
});

describe("a version", () => {
  it("has one meaning: another schema under it is refused before anything is called", async () => {
    await asleep("registered", { ...V1, version: "5.0.0" });
    const changed = build({ ...V2, version: "5.0.0" });
    const fresh = new AIMessage({ content: "", tool_calls: [{ id: "c", name: "mail", args: { recipient: "bob" } }] });
    const said = /"mail" 5.0.0 is registered with another meaning.*Give the changed one a new version/;
    await expect(changed.invoke({ messages: [fresh] }, thread("changed"))).rejects.toThrow(said);
    expect(calls).toEqual([]);
  });

  it.each([undefined, "", "1", "1.0", "v1.0.0", "latest", 1])(
    "is semantic: %j is refused at construction",
    (version) => {
      expect(() => mailTool({ ...V1, version: version as string })).toThrow("semantic version");
      expect(() => operation({ name: "o", version: version as string, effect: "read", run: async () => 1 })).toThrow(
        "semantic version",
      );
    },
  );

  it("stands once in a registry, and the newest is the one that models are told of", () => {
    const registry = toolRegistry([mailTool(V1), mailTool(V2), mailTool(WIDER)]);
    expect(registry.tools).toHaveLength(1);
    expect(registry.tools[0].schema).toBe(V2.schema);
    expect(() => toolRegistry([mailTool(V1), mailTool(V1)])).toThrow("the same version");
    expect(() => toolRegistry([mailTool(V2), mailTool(V1), mailTool(V1)])).toThrow("the same version");
  });
});

describe("an operation, and a value", () => {
  const charge = (version: string, migrate?: object) =>
    operation({
      name: "charge",
      version,
      effect: "write",
      run: async () => {
        calls.push(version);
        return { paid: version };
      },
      ...(migrate === undefined ? {} : { migrate }),
    });
  const charging = (version: string, { migrate, pins }: { migrate?: object; pins?: Record<string, string> } = {}) => {
    const op = charge(version, migrate);
    const node = durableNode(State, async (_, { step }) => {
      const { paid } = (await step.run(op, {})) as { paid: string };
      return { log: [paid] };
    });
    const builder = new StateGraph(State)
      .addNode("first", node)
      .addNode("sleep", () => {
        interrupt("asleep");
        return {};
      })
      .addNode("second", node)
      .addEdge(START, "first")
      .addEdge("first", "sleep")
      .addEdge("sleep", "second");
    return durableGraph(builder, { ledger, ...(pins === undefined ? {} : { pins }) });
  };

  it("of a new major version waits, and goes on when a person accepts it", async () => {
    calls = [];
    await charging("1.0.0").invoke({}, thread("operation"));
    const next = charging("2.0.0");
    expect(await next.invoke(wake, thread("operation"))).toHaveProperty("__interrupt__");
    expect(calls).toEqual(["1.0.0"]);
    await say("operation");
    expect((await next.invoke(null, thread("operation"))).log).toEqual(["1.0.0", "2.0.0"]);
  });

  it("that recorded an output in another form gives it to the new code in its form", async () => {
    calls = [];
    let failing = true;
    const flow = (version: string, migrate?: object) => {
      const op = charge(version, migrate);
      const node = durableNode(State, async (_, { step }) => {
        const { paid } = (await step.run(op, {})) as { paid: string };
        if (failing) throw new Error("dies after its step");
        return { log: [paid] };
      });
      return durableGraph(new StateGraph(State).addNode("n", node).addEdge(START, "n"), { ledger });
    };
    await expect(flow("1.0.0").invoke({}, thread("output"))).rejects.toThrow("dies after");
    failing = false;
    const output = (old: unknown, from: string) => ({ paid: `${(old as { paid: string }).paid} from ${from}` });
    const next = flow("2.0.0", { output });
    await next.invoke(null, thread("output"));
    await say("output", "migrate");
    expect((await next.invoke(null, thread("output"))).log).toEqual(["1.0.0 from 1.0.0"]);
    expect(calls).toEqual(["1.0.0"]);
  });

  it("that a thread is pinned to holds it: a prompt of another version waits before the next step", async () => {
    calls = [];
    const pins = { prompt: "1.0.0", model: "gpt-4.1" };
    await charging("1.0.0", { pins }).invoke({}, thread("value"));
    await charging("1.0.0", { pins: { ...pins, prompt: "1.1.0" } }).invoke(null, thread("value"));
    const next = charging("1.0.0", { pins: { prompt: "1.1.0", model: "gpt-5" } });
    expect(await next.invoke(wake, thread("value"))).toHaveProperty("__interrupt__");
    expect((await cardOf("value"))?.args).toMatchObject({ tool: "model", from: "gpt-4.1", to: "gpt-5" });
    await say("value");
    await next.invoke(null, thread("value"));
    expect(calls).toEqual(["1.0.0", "1.0.0"]);
    expect(await history("value")).toEqual(["1.0.0 -> 1.1.0: compatible by run", "gpt-4.1 -> gpt-5: accepted by ann"]);
  });

  it.each([["text"], [{ prompt: 1 }], [{ prompt: "" }], [[]]])("pins that are none are refused: %j", (pins) => {
    expect(() => charging("1.0.0", { pins: pins as never })).toThrow("Expected `pins` to be texts");
  });
});
