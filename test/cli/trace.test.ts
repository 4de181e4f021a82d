import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableModel } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { type PaidStep, writeThread } from "../support/paidSteps.js";
import { longhaul, runScript } from "../support/script.js";

let db: TestDatabase;

/** A night in Berlin (UTC+1 in March): at 3 a.m. one step of the analysis spends 17 dollars. */
const NIGHT: PaidStep[] = [
  { node: "plan", superstep: 1, startedAt: "2026-03-01T01:58:00Z", model: "gpt-5-mini", costNanoUsd: 1_200_000n },
  {
    node: "collect",
    superstep: 2,
    startedAt: "2026-03-01T01:58:10Z",
    name: "fetch",
    endedAt: "2026-03-01T01:58:12.400Z",
  },
  {
    node: "analyse",
    superstep: 3,
    startedAt: "2026-03-01T01:59:30Z",
    endedAt: "2026-03-01T02:04:00Z",
    model: "claude-opus-4-1",
    attempt: 3,
    inputTokens: 900_000,
    outputTokens: 46_666,
    costNanoUsd: 17_000_000_000n,
  },
  { node: "analyse", superstep: 3, startedAt: "2026-03-01T02:04:01Z", model: "house-blend", tool: "critic" },
  {
    node: "report",
    superstep: 4,
    startedAt: "2026-03-01T03:30:00Z",
    model: "gpt-5-mini",
    costNanoUsd: 2_000_000n,
    estimated: true,
  },
  { node: "report", superstep: 4, startedAt: "2026-03-02T03:00:30Z", name: "publish", state: "RUNNING", endedAt: null },
];

beforeAll(async () => {
  db = await testDatabase();
  await writeThread(db, "night", NIGHT);
  await writeThread(db, "day", [{ node: "plan", superstep: 1, startedAt: "2026-03-01T12:00:00Z" }]);
});

/** What a person in Berlin reads. */
async function read(...argv: string[]): Promise<string> {
  const { lines } = await runScript("src/cli/main.ts", ["trace", ...argv, "--url", db.url], { TZ: "Europe/Berlin" });
  return lines.map((line) => line["text"]).join("\n");
}

async function stepsOf(...argv: string[]): Promise<Record<string, unknown>[]> {
  const url = ["--json", "--url", db.url];
  const { code, lines } = await runScript("src/cli/main.ts", ["trace", ...argv, ...url], { TZ: "Europe/Berlin" });
  expect(code).toBe(0);
  return [...lines];
}

const numbers = (steps: readonly Record<string, unknown>[]) => steps.map((step) => step["number"]);

describe("longhaul trace", () => {
  it("says on which step the task spent 17 dollars at 3 a.m.", async () => {
    const text = await read("night", "--at", "03:00");
    expect(text).toContain("Thread night: done, 2026-03-01 02:58:00 to ");
    expect(text).toContain("(Europe/Berlin), 6 steps, $17.0032 + 1 unpriced (1 estimated)");
    expect(text).toMatch(/superstep 3 {2}analyse {2}2026-03-01 {2}1 step {2}\$17\.0000/);
    expect(text).toMatch(
      /#3 .*claude-opus-4-1 .*02:59:30 .*4 min 30 s .*SUCCEEDED .*try 3, 2 failed .*900,000 in, 46,666 out .*\$17\.0000/,
    );
    expect(text).toContain(
      "Most: #3 claude-opus-4-1 in analyse, superstep 3, at 02:59:30: $17.0000, 100 % of the thread.",
    );
    expect(text).not.toContain("gpt-5-mini");
  });

  it("shows the whole thread as a tree: a line for each task by superstep, its steps below it", async () => {
    const lines = (await read("night")).split("\n");
    expect(lines.flatMap((line) => /^superstep (\d+) {2}(\w+)/.exec(line)?.slice(1).join(" ") ?? [])).toEqual([
      "1 plan",
      "2 collect",
      "3 analyse",
      "4 report",
    ]);
    expect(lines.flatMap((line) => /^ {2}(#\d)/.exec(line)?.[1] ?? [])).toEqual(["#1", "#2", "#3", "#4", "#5", "#6"]);
  });

  it("says that a price is not known, and that a count is an estimate, and never shows 0 for either", async () => {
    const text = await read("night");
    expect(text).toMatch(/#4 .*house-blend by critic .*1,000 in, 500 out +unpriced/);
    expect(text).toMatch(/#5 .*\$0\.0020 \(estimated\)/);
    expect(text).not.toContain("$0.0000");
  });

  it("has one object a line as JSON: money as text of nano-dollars, times in ISO, null for an unknown price", async () => {
    const steps = await stepsOf("night");
    expect(steps).toHaveLength(6);
    expect(steps[2]).toMatchObject({
      threadId: "night",
      number: 3,
      node: "analyse",
      superstep: 3,
      taskId: "task-3",
      state: "SUCCEEDED",
      attempt: 3,
      failures: 2,
      startedAt: "2026-03-01T01:59:30.000Z",
      endedAt: "2026-03-01T02:04:00.000Z",
      durationMs: 270_000,
      model: "claude-opus-4-1",
      inputTokens: 900_000,
      outputTokens: 46_666,
      costNanoUsd: "17000000000",
      unpriced: false,
      estimated: false,
    });
    expect(steps[3]).toMatchObject({ costNanoUsd: null, unpriced: true, tool: "critic" });
    expect(steps[1]).not.toHaveProperty("costNanoUsd");
    expect(steps[5]).toMatchObject({ endedAt: null, durationMs: null, state: "RUNNING" });
  });

  it("chooses by time: of every day, of one day, to the second, with a zone, and over midnight", async () => {
    expect(numbers(await stepsOf("night", "--at", "02:58"))).toEqual([1, 2, 6]);
    expect(numbers(await stepsOf("night", "--at", "2026-03-01T02:58:11"))).toEqual([2]);
    expect(numbers(await stepsOf("night", "--at", "2026-03-01T02:00:00Z"))).toEqual([3]);
    expect(numbers(await stepsOf("night", "--at", "2026-03-01"))).toEqual([1, 2, 3, 4, 5]);
    expect(numbers(await stepsOf("night", "--between", "2026-03-01 03:04", "2026-03-01 04:30"))).toEqual([3, 4]);
    expect(numbers(await stepsOf("night", "--between", "03:04", "04:30"))).toEqual([3, 4, 6]);
    expect(numbers(await stepsOf("day", "--between", "23:00", "01:00"))).toEqual([]);
    expect(numbers(await stepsOf("day", "--between", "12:30", "01:00"))).toEqual([1]);
  });

  it("takes a step that is still running for at work until now", async () => {
    expect(numbers(await stepsOf("night", "--between", "2026-03-03", "2026-03-04"))).toEqual([6]);
  });

  it("names the dearest steps, those without a price last, with their share of the thread", async () => {
    expect(numbers(await stepsOf("night", "--top", "10"))).toEqual([3, 5, 1, 4]);
    expect(numbers(await stepsOf("night", "--top", "2"))).toEqual([3, 5]);
    const text = await read("night", "--top", "2");
    expect(text).toMatch(/\$17\.0000 +100 % +#3 +claude-opus-4-1 +analyse +2026-03-01 02:59:30/);
  });

  it("leaves out what cost less than a sum, to the nano-dollar", async () => {
    expect(numbers(await stepsOf("night", "--min-usd", "0.002"))).toEqual([3, 5]);
    expect(numbers(await stepsOf("night", "--min-usd", "0.002000001"))).toEqual([3]);
  });

  it("says so when nothing ran then, or nothing at all", async () => {
    expect(await read("day", "--at", "2026-03-05")).toContain("No step of it is among what was asked for.");
    await writeThread(db, "empty", []);
    expect(await read("empty")).toBe("Thread empty: done, no step yet.");
  });

  it("prints nothing of prompts, inputs and outputs", async () => {
    const texts = [await read("night"), await read("night", "--top", "9"), JSON.stringify(await stepsOf("night"))];
    for (const text of texts) expect(text).not.toContain("SECRET");
  });

  it("fails with NOT_FOUND for a thread that is not there", async () => {
    const { code, lines } = await longhaul(db.url, "trace", "nobody");
    expect([code, lines]).toEqual([1, [{ error: "NOT_FOUND", message: expect.stringContaining('"nobody"') }]]);
  });

  it("ends with 2 for a time that is none, and says what is allowed", async () => {
    const { code, lines } = await longhaul(db.url, "trace", "night", "--at", "3 a.m.");
    expect([code, lines]).toEqual([2, [{ error: "INVALID_OPTION", message: expect.stringContaining("03:00") }]]);
  });

  it("says what to run on a ledger that an older version made", async () => {
    const old = await testDatabase();
    await old.sql("delete from longhaul.migrations where version > 1");
    const { code, lines } = await longhaul(old.url, "trace", "night");
    expect([code, lines]).toEqual([
      1,
      [{ error: "SCHEMA_VERSION", message: expect.stringContaining("longhaul migrate") }],
    ]);
  });

  it("ends with 2 for a number of steps or a sum that is none", async () => {
    for (const argv of [
      ["--top", "0"],
      ["--min-usd", "cheap"],
    ]) {
      const { code, stderr } = await longhaul(db.url, "trace", "night", ...argv);
      expect([code, stderr]).toEqual([2, expect.stringContaining("Expected")]);
    }
  });

  it("traces a real run, and counts a replayed call no second time", async () => {
    const models = await modelServer();
    const model = durableModel(models.chat());
    let dies = true;
    const State = Annotation.Root({ out: Annotation<string> });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("ask", async () => {
          const { text } = await model.invoke("Why?");
          if (dies) throw new Error("the node dies");
          return { out: text };
        })
        .addEdge(START, "ask")
        .addEdge("ask", END),
      { ledger: db.openLedger() },
    );
    const config = { configurable: { thread_id: "real" } };
    await expect(graph.invoke({}, config)).rejects.toThrow("the node dies");
    dies = false;
    await graph.invoke(null, config);
    const steps = await stepsOf("real");
    expect(steps).toMatchObject([{ node: "ask", model: "gpt-4.1-mini", costNanoUsd: "1200000", attempt: 1 }]);
    expect(models.requests()).toBe(1);
  });
});
