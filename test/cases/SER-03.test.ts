// SER-03: characters that PostgreSQL's texts do not take (NUL, halves of surrogate pairs) fail no run, and come back as they were
// wherever they are data.
import type { ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  approvalsOf,
  decide,
  durableGraph,
  durableNode,
  durableTool,
  type Ledger,
  requestApproval,
  settle,
} from "../../src/index.js";
import { oneNode, State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const ODD = ["a\u0000b", "\ud800", "\udc00 first", "literal \\u0000", "ok \u{1f600}"];

describe.each(ODD.map((text) => [JSON.stringify(text), text] as const))("SER-03: %s", (name, text) => {
  it("comes back from steps and state as it was, on the first run and on replay", async () => {
    let dies = true;
    const seen: unknown[] = [];
    const graph = oneNode(ledger, async (step) => {
      seen.push(await step.write("echo", { text }, async () => ({ text })));
      if (dies) throw new Error("dies after its step");
      return text;
    });
    await expect(graph.invoke({}, thread(`step ${name}`))).rejects.toThrow("dies after");
    dies = false;
    const { log } = await graph.invoke(null, thread(`step ${name}`));
    expect(seen).toEqual([{ text }, { text }]);
    expect(log).toEqual([text]);
    expect((await graph.getState(thread(`step ${name}`))).values.log).toEqual([text]);
  });

  it("goes through a tool and its arguments", async () => {
    const echo = durableTool(
      tool(async ({ said }: { said: string }) => said, {
        name: "echo",
        description: "Echoes.",
        schema: z.object({ said: z.string() }),
      }),
      { version: "1.0.0", effect: "write" },
    );
    const node = durableNode(State, async () => {
      const answer: unknown = await echo.invoke({ type: "tool_call", id: "c", name: "echo", args: { said: text } });
      return { log: [(answer as ToolMessage).text] };
    });
    const graph = durableGraph(new StateGraph(State).addNode("n", node).addEdge(START, "n"), { ledger });
    expect((await graph.invoke({}, thread(`tool ${name}`))).log).toEqual([text]);
  });

  it("in an error, a comment, a reason and metadata fails nothing", async () => {
    const id = `texts ${name}`;
    const failing = oneNode(ledger, (step) =>
      step.write("fails", {}, async () => {
        throw new Error(`it said ${text}`);
      }),
    );
    await failing.invoke({}, { ...thread(id), metadata: { label: text } });
    const [row] = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = $1",
      [id],
    );
    const settled = await settle(ledger, {
      idempotencyKey: row?.key ?? "",
      by: "ann",
      outcome: "happened",
      receipt: { text },
      reason: text,
    });
    expect(settled.result).toBe("settled");
    const asking = oneNode(ledger, async (_, runtime) => {
      const { comment } = await requestApproval(runtime, { action: "say", args: { text }, description: text });
      return comment ?? "";
    });
    await asking.invoke({}, thread(`asks ${id}`));
    const [request] = await approvalsOf(ledger, { threadId: `asks ${id}` });
    expect(request?.args).toEqual({ text });
    const decision = { status: "approved", comment: text } as const;
    expect((await decide(ledger, { approvalId: request?.id ?? "", by: "ann", decision })).result).toBe("applied");
    await asking.invoke(null, thread(`asks ${id}`));
  });
});

it("SER-03: a thread id with NUL is refused before anything is stored", async () => {
  await expect(oneNode(ledger, async () => 1).invoke({}, thread("a\u0000b"))).rejects.toMatchObject({ status: 400 });
});
