import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { sha256 } from "../../src/core/key.js";
import { formatUsd, sumCosts } from "../../src/core/price.js";
import type { Usage } from "../../src/core/step.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { stepsOfThread } from "../../src/postgres/stepRows.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const usage = (inputTokens: number, costNanoUsd?: bigint): Usage => ({
  model: "gpt-5-mini",
  inputTokens,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costNanoUsd,
  estimated: false,
});

/** Records a model call for each usage, as a run does, and reads back what the columns hold. */
async function record(threadId: string, usages: readonly Usage[]): Promise<Usage[]> {
  const ledger = db.openLedger();
  const { steps, runs } = await ledger[LEDGER_PARTS].open();
  const acquired = await runs.acquire(threadId, randomUUID(), 60_000, "run");
  if (!("ticket" in acquired)) throw new Error("The thread is busy.");
  for (const [i, spent] of usages.entries()) {
    const intent = {
      key: sha256(`${threadId} ${i}`),
      kind: "llm",
      effect: "read",
      name: "model",
      version: undefined,
      callSite: String(i),
      position: { threadId, node: "agent", taskId: "t", checkpointNs: "agent:t", checkpointId: "c", superstep: 1 },
      inputHash: sha256("input"),
      input: undefined,
      timeoutMs: 1000,
      settleMs: 1000,
      keyLifetimeMs: undefined,
      leaseMs: 30_000,
    } as const;
    const answer = await steps.begin(acquired.ticket, intent, randomUUID());
    if (!("claim" in answer)) throw new Error("The step was not claimed.");
    await steps.record(answer.claim, { to: "SUCCEEDED", output: "null", usage: spent });
  }
  await runs.release(acquired.ticket, "done");
  const rows = await stepsOfThread(await databaseOf(ledger), threadId);
  return rows.flatMap(({ record: { usage: stored } }) => (stored === undefined ? [] : [stored]));
}

const tokens = (usages: readonly Usage[]) => usages.reduce((sum, { inputTokens }) => sum + inputTokens, 0);

/** The same sums from what `longhaul show --json` prints. */
async function shown(threadId: string): Promise<Usage[]> {
  const { code, lines } = await longhaul(db.url, "show", threadId);
  expect(code).toBe(0);
  return lines.map((line) => line["usage"] as Usage);
}

describe("TOK-04: sums of tokens and money", () => {
  it("TOK-04: 16 972 and 437 tokens are 17 409, as numbers and not as text", async () => {
    const usages = await record("small", [usage(16_972), usage(437)]);
    expect(tokens(usages)).toBe(17_409);
  });

  it("TOK-04: 8 758 220 116 tokens are more than an int4 holds, in one call and as a sum", async () => {
    const usages = await record("large", [usage(8_758_220_116), usage(8_758_203_144), usage(16_972)]);
    expect(usages.map(({ inputTokens }) => inputTokens)).toEqual([8_758_220_116, 8_758_203_144, 16_972]);
    expect(tokens(usages.slice(1))).toBe(8_758_220_116);
  });

  it("TOK-04: ten costs of 0.1 dollars are exactly 1 dollar, so that a cap of 1 is reached", async () => {
    const usages = await record(
      "money",
      Array.from({ length: 10 }, () => usage(1, 100_000_000n)),
    );
    const { costNanoUsd, unpriced } = sumCosts(usages);
    expect({ costNanoUsd, unpriced }).toEqual({ costNanoUsd: 1_000_000_000n, unpriced: 0 });
    expect(formatUsd(costNanoUsd)).toBe("1.0000");
  });

  it("TOK-04: keeps every nano-dollar of a large sum, and counts what has no price instead of adding 0", async () => {
    const usages = await record("exact", [usage(1, 9_007_199_254_740_993n), usage(1, 1n), usage(1)]);
    expect(sumCosts(usages)).toEqual({ costNanoUsd: 9_007_199_254_740_994n, unpriced: 1 });
    expect(formatUsd(9_007_199_254_740_994n)).toBe("9007199.254740994");
  });

  it("TOK-04: `longhaul runs` and `show` say the same: tokens as numbers, money as text that loses no digit", async () => {
    const [runs, large, money] = await Promise.all([longhaul(db.url, "runs"), shown("large"), shown("money")]);
    const sums = Object.fromEntries(
      runs.lines.map((line) => [line["threadId"], [line["costNanoUsd"], line["unpricedCalls"]]]),
    );
    expect(sums).toMatchObject({ money: ["1000000000", 0], exact: ["9007199254740994", 1], small: ["0", 2] });
    expect(tokens(large.slice(1))).toBe(8_758_220_116);
    expect(money.map((spent) => String(spent.costNanoUsd))).toEqual(Array(10).fill("100000000"));
  });
});
