// INT-01: code before a question runs again on every answer; what is not recorded there is pointed out in development. (That
// recorded steps happen once is in approvals/decisions.test.ts.)
import { tool } from "@langchain/core/tools";
import { Command, interrupt, START, StateGraph } from "@langchain/langgraph";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableTool, type Ledger } from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { testDatabase } from "../support/database.js";

let ledger: Ledger;
beforeAll(async () => {
  ledger = (await testDatabase()).openLedger();
});

let warned: string[] = [];
const listen = (warning: Error & { code?: string }) => {
  if (warning.code === "LONGHAUL_REPEATED_CALL") warned.push(warning.message);
};
beforeEach(() => {
  warned = [];
  process.on("warning", listen);
});
afterEach(() => {
  process.off("warning", listen);
});
const told = () => new Promise((resolve) => setImmediate(resolve));

function posting(name: string) {
  const posts: string[] = [];
  const post = async ({ text }: { text: string }) => String(posts.push(text));
  return { posts, post: tool(post, { name, description: "Posts.", schema: z.object({ text: z.string() }) }) };
}

function asking(node: string, before: () => Promise<unknown>, after: () => Promise<unknown> = async () => {}) {
  const builder = new StateGraph(State).addNode(node, async () => {
    await before();
    const answer: string = interrupt("Go on?");
    await after();
    return { log: [answer] };
  });
  // The name is one of the graph's only now.
  return durableGraph(builder.addEdge(START, node as never), { ledger });
}

describe("INT-01: an effect before a question", () => {
  it("that is not recorded happens again, and is pointed out once", async () => {
    const { posts, post } = posting("post");
    const graph = asking("plain", () => post.invoke({ text: "hello" }));
    await graph.invoke({}, thread("plain"));
    await told();
    expect(warned).toHaveLength(1);
    expect(warned[0]).toContain('Node "plain" called the tool "post", which is not recorded, and then asked a person.');
    await graph.invoke(new Command({ resume: "yes" }) as never, thread("plain"));
    expect(posts).toHaveLength(2);
    await graph.invoke({}, thread("plain again"));
    await told();
    expect(warned).toHaveLength(1);
  });

  it("that is recorded happens once, and nothing is said", async () => {
    const { posts, post } = posting("record");
    const durable = durableTool(post, { version: "1.0.0", effect: "write" });
    const graph = asking("recorded", () => durable.invoke({ text: "hello" }));
    await graph.invoke({}, thread("recorded"));
    await graph.invoke(new Command({ resume: "yes" }) as never, thread("recorded"));
    await told();
    expect(posts).toHaveLength(1);
    expect(warned).toEqual([]);
  });

  it("nothing is said of a call after the question, nor of a tool that asks itself", async () => {
    const { post } = posting("late");
    const graph = asking(
      "after",
      async () => {},
      () => post.invoke({ text: "hello" }),
    );
    await graph.invoke({}, thread("after"));
    await graph.invoke(new Command({ resume: "yes" }) as never, thread("after"));
    const ask = tool(async () => interrupt("which?") as string, {
      name: "ask",
      description: "Asks.",
      schema: z.object({}),
    });
    await asking("in the tool", () => ask.invoke({})).invoke({}, thread("in the tool"));
    await told();
    expect(warned).toEqual([]);
  });
});
