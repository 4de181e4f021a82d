// VER-04 (vercel/ai#16902, pipelock#1230): a tool's definition changes after a person approved a call of it (an MCP server's rug pull),
// and a check that stops at every change of wording is switched off.
import { AIMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  approvalsOf,
  decide,
  drainReason,
  durableGraph,
  durableTool,
  type Ledger,
  toolRegistry,
} from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});
let calls: unknown[] = [];
beforeEach(() => {
  calls = [];
});

const ARGS = {
  type: "object",
  properties: { path: { type: "string", description: "What to delete." }, force: { type: "boolean" } },
  required: ["path"],
};
interface Definition {
  readonly name?: string;
  readonly version?: string;
  readonly description?: string;
  readonly schema?: object;
  readonly annotations?: object;
}

/** A tool as an MCP server's client makes it. Deleting needs a person's yes. */
function build({ name = "delete", version = "1.0.0", description = "Deletes.", ...more }: Definition) {
  const plain = new DynamicStructuredTool({
    name,
    description,
    schema: (more.schema ?? ARGS) as never,
    metadata: { annotations: more.annotations ?? { destructiveHint: true, readOnlyHint: false } },
    func: async (args: unknown) => {
      calls.push(args);
      return "deleted";
    },
  });
  const registry = toolRegistry([durableTool(plain, { version, effect: "write", approval: {} })]);
  const asked = new AIMessage({ content: "", tool_calls: [{ id: "c", name: "delete", args: { path: "/tmp/x" } }] });
  return durableGraph(
    new StateGraph(MessagesAnnotation)
      .addNode("ask", () => ({ messages: [asked] }))
      .addNode("tools", new ToolNode([...registry.tools]))
      .addEdge(START, "ask")
      .addEdge("ask", "tools")
      .addEdge("tools", END),
    { ledger, tools: registry },
  );
}

/** A thread that waits for a yes, under the first definition. Each has a schema of its own: a version is registered for good. */
async function waiting(id: string): Promise<string> {
  await build({}).invoke({ messages: [] }, thread(id));
  const [card] = await approvalsOf(ledger, { threadId: id, status: "pending" });
  expect(card?.action).toBe("delete");
  return card?.id ?? "";
}
const yes = (approvalId: string) => decide(ledger, { approvalId, by: "ann", decision: { status: "approved" } });
const pending = (threadId: string) => approvalsOf(ledger, { threadId, status: "pending" });
const statusOf = async (id: string, threadId: string) =>
  (await approvalsOf(ledger, { threadId })).find((card) => card.id === id)?.status;

describe("VER-04: a tool whose definition changes while a person is asked about it", () => {
  it.each([
    [
      "keys in another order",
      {
        schema: {
          required: ["path"],
          properties: { force: { type: "boolean" }, path: { type: "string" } },
          type: "object",
        },
      },
    ],
    ["another wording", { description: "Deletes a file, at last explained." }],
  ])("VER-04: goes on with %s: it means the same", async (id, changed: Definition) => {
    const card = await waiting(id);
    await yes(card);
    await build(changed).invoke(null, thread(id));
    expect(calls).toEqual([{ path: "/tmp/x" }]);
  });

  it("VER-04: goes on with an optional argument more, and the history says so", async () => {
    const card = await waiting("optional");
    await yes(card);
    const properties = { ...ARGS.properties, dryRun: { type: "boolean" } };
    await build({ version: "1.1.0", schema: { ...ARGS, properties } }).invoke(null, thread("optional"));
    expect(calls).toEqual([{ path: "/tmp/x" }]);
    expect(await db.sql("select verdict, detail from longhaul.pin_events where thread_id = 'optional'")).toMatchObject([
      { verdict: "compatible", detail: expect.stringContaining("/input/dryRun") },
    ]);
  });

  it.each([
    [
      "a required argument more",
      { version: "1.2.0", schema: { ...ARGS, required: ["path", "force"] } },
      "/input/force",
    ],
    [
      "a hint that was turned round",
      { version: "1.3.0", annotations: { destructiveHint: false, readOnlyHint: false } },
      "hint destructive",
    ],
  ])(
    "VER-04: is blocked by %s until it is allowed anew, and what was allowed before is stale",
    async (id, changed, where) => {
      const card = await waiting(id);
      await yes(card);
      const graph = build(changed as Definition);
      await graph.invoke(null, thread(id));
      const [question] = await pending(id);
      expect(question?.action).toBe("use another version of delete");
      expect(JSON.stringify(question?.args)).toContain(where);
      await yes(question?.id ?? "");
      // The definition is accepted; the call itself is asked about again.
      await graph.invoke(null, thread(id)).catch(() => undefined);
      expect(calls).toEqual([]);
      expect(await statusOf(card, id)).toBe("superseded");
    },
  );

  it("VER-04: is refused where the version stays and the meaning does not", async () => {
    const card = await waiting("rug pull");
    await yes(card);
    const changed = build({ schema: { ...ARGS, required: ["path", "force"] } });
    await expect(changed.invoke(null, thread("rug pull"))).rejects.toMatchObject({
      code: "TOOL_DRIFT",
      message: expect.stringContaining("/input/force"),
    });
    expect(calls).toEqual([]);
  });

  it("VER-04: is blocked when it is renamed or removed, its question is stale, and the build that has it asks again", async () => {
    const card = await waiting("renamed");
    await yes(card);
    await expect(build({ name: "erase" }).invoke(null, thread("renamed"))).rejects.toMatchObject({
      code: "TOOL_DRIFT",
    });
    expect(await statusOf(card, "renamed")).toBe("superseded");
    expect(calls).toEqual([]);
    const back = build({});
    await back.invoke(null, thread("renamed"));
    const [again] = await pending("renamed");
    expect(again?.id).not.toBe(card);
    await yes(again?.id ?? "");
    await back.invoke(null, thread("renamed"));
    expect(calls).toEqual([{ path: "/tmp/x" }]);
  });

  it("VER-04: is not called while the pins cannot be read", async () => {
    const card = await waiting("unreadable");
    await yes(card);
    await db.sql("alter table longhaul.pins rename to hidden_pins");
    const error = await build({})
      .invoke(null, thread("unreadable"))
      .catch((thrown: unknown) => thrown);
    await db.sql("alter table longhaul.hidden_pins rename to pins");
    expect(drainReason(error)?.kind).toBe("unrecorded");
    expect(calls).toEqual([]);
    await build({}).invoke(null, thread("unreadable"));
    expect(calls).toEqual([{ path: "/tmp/x" }]);
  });
});
