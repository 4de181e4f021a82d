import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph, durableModel } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { type PaidStep, writeThread } from "../support/paidSteps.js";
import { longhaul, runScript } from "../support/script.js";

let db: TestDatabase;

const ONE: PaidStep[] = [
  { node: "plan", superstep: 1, startedAt: "2026-03-01T01:58:00Z", model: "gpt-5", costNanoUsd: 1n },
  { node: "search", superstep: 2, startedAt: "2026-03-01T01:59:00Z", name: "fetch" },
  {
    node: "write",
    superstep: 3,
    startedAt: "2026-03-01T02:10:00Z",
    model: "gpt-5",
    costNanoUsd: 2_000_000_000n,
    attempt: 4,
  },
  { node: "write", superstep: 3, startedAt: "2026-03-01T02:20:00Z", model: "house-blend", tool: "critic" },
];
const TWO: PaidStep[] = [
  {
    node: "plan",
    superstep: 1,
    startedAt: "2026-03-02T02:30:00Z",
    model: "gpt-5",
    costNanoUsd: 9_007_199_254_740_993n,
  },
  {
    node: "plan",
    superstep: 1,
    startedAt: "2026-03-02T08:00:00Z",
    model: "gpt-5-mini",
    tool: "critic",
    costNanoUsd: 3_000_000_000n,
    estimated: true,
  },
];

beforeAll(async () => {
  db = await testDatabase();
  await writeThread(db, "one", ONE);
  await writeThread(db, "two", TWO);
});

/** As a script in Kolkata (UTC+5:30) reads it. */
async function costs(...argv: string[]): Promise<Record<string, unknown>[]> {
  const url = ["--json", "--url", db.url];
  const { code, lines } = await runScript("src/cli/main.ts", ["costs", ...argv, ...url], { TZ: "Asia/Kolkata" });
  expect(code).toBe(0);
  return [...lines];
}

async function read(...argv: string[]): Promise<string> {
  const { lines } = await runScript("src/cli/main.ts", ["costs", ...argv, "--url", db.url], { TZ: "Asia/Kolkata" });
  return lines.map((line) => line["text"]).join("\n");
}

describe("longhaul costs", () => {
  it("sums up by thread, the dearest first, every nano-dollar of it", async () => {
    expect(await costs()).toEqual([
      {
        by: "thread",
        thread: "two",
        calls: 2,
        retried: 0,
        inputTokens: 2000,
        outputTokens: 1000,
        costNanoUsd: "9007202254740993",
        unpriced: 0,
        estimated: 1,
      },
      {
        by: "thread",
        thread: "one",
        calls: 3,
        retried: 1,
        inputTokens: 3000,
        outputTokens: 1500,
        costNanoUsd: "2000000001",
        unpriced: 1,
        estimated: 0,
      },
    ]);
  });

  it("sums up by node, tool and model; what has no price is unpriced and last, never 0", async () => {
    expect((await costs("--by", "node")).map((sum) => [sum["node"], sum["calls"]])).toEqual([
      ["plan", 3],
      ["write", 2],
    ]);
    expect((await costs("--by", "tool")).map((sum) => [sum["tool"], sum["calls"], sum["costNanoUsd"]])).toEqual([
      [null, 3, "9007201254740994"],
      ["critic", 2, "3000000000"],
    ]);
    expect((await costs("--by", "model")).map((sum) => [sum["model"], sum["costNanoUsd"], sum["unpriced"]])).toEqual([
      ["gpt-5", "9007201254740994", 0],
      ["gpt-5-mini", "3000000000", 0],
      ["house-blend", null, 1],
    ]);
  });

  it("sums up by hour, in their order: hours of this machine's zone, in ISO", async () => {
    expect((await costs("--by", "hour")).map((sum) => [sum["hour"], sum["calls"]])).toEqual([
      ["2026-03-01T01:30:00.000Z", 3],
      ["2026-03-02T02:30:00.000Z", 1],
      ["2026-03-02T07:30:00.000Z", 1],
    ]);
  });

  it("takes one thread, and the calls of a time", async () => {
    expect((await costs("--by", "model", "--thread", "one")).map((sum) => sum["model"])).toEqual([
      "gpt-5",
      "house-blend",
    ]);
    const early = await costs("--by", "thread", "--between", "07:40", "08:01");
    expect(early.map((sum) => [sum["thread"], sum["costNanoUsd"]])).toEqual([
      ["two", "9007199254740993"],
      ["one", "2000000000"],
    ]);
    expect(await costs("--at", "2026-02-01")).toEqual([]);
    expect(await costs("--thread", "one", "--at", "2026-03-02")).toEqual([]);
  });

  it("tells people dollars, the zone of the hours, and the sum of all, also of what is not listed", async () => {
    const text = await read("--by", "model", "--limit", "1");
    expect(text).toMatch(/gpt-5 +\$9007201\.254740994 +3 +1 +3,000 +1,500/);
    expect(text).not.toContain("house-blend");
    expect(text).toContain(
      "All: $9007204.254740994 + 1 unpriced (1 estimated) for 5 calls, 2 calls of them not listed (--limit).",
    );
    expect(await read("--by", "hour")).toContain("hour (Asia/");
    expect(await read("--by", "tool")).toContain("(no tool)");
    expect(await read("--by", "model")).toMatch(/house-blend +unpriced/);
    expect(await read("--at", "2026-02-01")).toBe("Nothing was paid for.");
  });

  it("knows which tool made a model call", async () => {
    const models = await modelServer();
    const model = durableModel(models.chat());
    const pay = tool(async () => (await model.invoke("Is it safe?")).text, {
      name: "pay",
      description: "asks before it pays",
      schema: z.object({ amount: z.number() }),
    });
    const graph = durableGraph(
      new StateGraph(MessagesAnnotation)
        .addNode("think", async ({ messages }) => ({ messages: [await model.bindTools([pay]).invoke(messages)] }))
        .addNode("tools", new ToolNode([pay]))
        .addEdge(START, "think")
        .addEdge("think", "tools")
        .addEdge("tools", END),
      { ledger: db.openLedger() },
    );
    await graph.invoke({ messages: [new HumanMessage("pay now")] }, { configurable: { thread_id: "tooled" } });
    const sums = await costs("--by", "tool", "--thread", "tooled");
    expect(sums.map((sum) => [sum["tool"], sum["calls"]])).toEqual(
      expect.arrayContaining([
        ["pay", 1],
        [null, 1],
      ]),
    );
  });

  it("ends with 2 for a grouping that is none, and says which there are", async () => {
    const { code, stderr } = await longhaul(db.url, "costs", "--by", "mood");
    expect([code, stderr]).toEqual([2, expect.stringMatching(/thread, node, tool, model, hour/)]);
  });

  it("fails with NOT_FOUND for a thread that is not there, and ends with 2 for a time that is none", async () => {
    const nobody = await longhaul(db.url, "costs", "--thread", "nobody");
    expect([nobody.code, nobody.lines]).toEqual([
      1,
      [{ error: "NOT_FOUND", message: expect.stringContaining("nobody") }],
    ]);
    expect((await longhaul(db.url, "costs", "--at", "noon")).code).toBe(2);
  });
});

describe("the views for SQL", () => {
  it("costs has one row a paid call, whatever its attempts, and says what has no price", async () => {
    const rows = await db.sql(
      "select node, step, tool, model, tokens, cost_nano_usd, unpriced, estimated, attempt from longhaul.costs where thread_id = 'one' order by at",
    );
    const paid = { step: "model", tokens: "1500", estimated: false };
    expect(rows).toEqual([
      { ...paid, node: "plan", tool: null, model: "gpt-5", cost_nano_usd: "1", unpriced: false, attempt: 1 },
      { ...paid, node: "write", tool: null, model: "gpt-5", cost_nano_usd: "2000000000", unpriced: false, attempt: 4 },
      { ...paid, node: "write", tool: "critic", model: "house-blend", cost_nano_usd: null, unpriced: true, attempt: 1 },
    ]);
  });

  it("costs_by_hour leaves unpriced calls out of the sum, and counts them", async () => {
    const rows = await db.sql(
      "select hour, model, calls::int, cost_nano_usd, unpriced::int from longhaul.costs_by_hour where thread_id = 'one' order by hour, model",
    );
    const second = new Date("2026-03-01T02:00:00Z");
    expect(rows).toEqual([
      { hour: new Date("2026-03-01T01:00:00Z"), model: "gpt-5", calls: 1, cost_nano_usd: "1", unpriced: 0 },
      { hour: second, model: "gpt-5", calls: 1, cost_nano_usd: "2000000000", unpriced: 0 },
      { hour: second, model: "house-blend", calls: 1, cost_nano_usd: null, unpriced: 1 },
    ]);
  });

  it("answer in SQL on which step a thread spent most in an hour", async () => {
    const [row] = await db.sql(
      "select node, model, cost_nano_usd / 1e9 as usd from longhaul.costs where thread_id = 'one' and at >= '2026-03-01 02:00Z' and at < '2026-03-01 03:00Z' order by cost_nano_usd desc nulls last limit 1",
    );
    expect(row).toMatchObject({ node: "write", model: "gpt-5", usd: expect.stringMatching(/^2\.0+$/) });
  });

  it("say what a row of them is", async () => {
    const comments = await db.sql(
      "select obj_description(('longhaul.' || name)::regclass) as said from unnest(array['costs', 'costs_by_hour']) name",
    );
    expect(comments.map(({ said }) => said)).toEqual([
      expect.stringContaining("One row a paid call"),
      expect.stringContaining("One row an hour, thread and model"),
    ]);
  });
});
