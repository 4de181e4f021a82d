// G22: reservations on PostgreSQL. What is admitted fits, whoever asks at once; every reservation is settled once.
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import type { Amounts, BudgetLedger, StoredLimits } from "../../src/core/budget.js";
import { NOTHING } from "../../src/core/budget.js";
import type { RunTicket } from "../../src/core/ledger.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const NO_LIMITS: StoredLimits = {
  nanoUsd: undefined,
  tokens: undefined,
  modelCalls: undefined,
  toolCalls: undefined,
  iterations: undefined,
  activeMs: undefined,
  deadline: undefined,
};
const usd = (dollars: number): Amounts => ({ ...NOTHING, nanoUsd: BigInt(Math.round(dollars * 1e9)), modelCalls: 1 });

/** A run that holds a thread, and its way to the budgets. */
async function worker(threadId: string): Promise<{ budgets: BudgetLedger; ticket: RunTicket }> {
  const { budgets, runs } = await db.openLedger()[LEDGER_PARTS].open();
  const answer = await runs.acquire(threadId, randomUUID(), 60_000, "run");
  if (!("ticket" in answer)) throw new Error("The thread is busy.");
  return { budgets, ticket: answer.ticket };
}

async function scope(name: string, limits: Partial<StoredLimits>, parent?: string) {
  const run = await worker(name);
  const terms = {
    scope: name,
    parent,
    limits: { ...NO_LIMITS, ...limits },
    kept: NOTHING,
    once: false,
    newInput: false,
    anew: false,
  };
  await run.budgets.open(run.ticket, terms);
  const reserve = (request: Amounts, scopes = [name], id: string = randomUUID()) =>
    run.budgets.reserve(run.ticket, { id, stepKey: undefined, attempt: 1, scopes, request });
  const state = async () => {
    const found = await run.budgets.read(name);
    if (found === undefined) throw new Error("The scope is gone.");
    return found;
  };
  return { ...run, name, reserve, state };
}

describe("BUD-01: parallel calls under one cap", () => {
  it("BUD-01: of four that would each fit alone, the two are admitted that fit together", async () => {
    const cap = await scope("bud-01", { nanoUsd: 5_000_000_000n });
    await cap.reserve(usd(4.75272), ["bud-01"], "before");
    await cap.budgets.settle("before", usd(4.75272));
    const answers = await Promise.all(Array.from({ length: 4 }, () => cap.reserve(usd(0.0884))));
    expect(answers.filter((answer) => "reserved" in answer)).toHaveLength(2);
    const { spent, reserved } = await cap.state();
    expect(spent.nanoUsd + reserved.nanoUsd).toBe(4_929_520_000n);
    expect(answers.find((answer) => "exceeded" in answer)).toMatchObject({
      exceeded: { scope: "bud-01", limit: "usd", allowed: 5_000_000_000n, requested: 88_400_000n },
    });
  });

  it("BUD-01: sums stay exact over sixteen connections and two levels, and nobody waits for ever", async () => {
    const parent = await scope("parent", { modelCalls: 100 });
    const children = await Promise.all(
      Array.from({ length: 16 }, (_, i) => scope(`child-${i}`, { modelCalls: 10 }, "parent")),
    );
    const admitted: string[] = [];
    await Promise.all(
      children.map(async (child) => {
        for (let i = 0; i < 12; i++) {
          const id = `${child.name}:${i}`;
          // Named in either order: the statement locks from the outermost inwards all the same.
          const scopes = i % 2 === 0 ? [child.name, "parent"] : ["parent", child.name];
          const answer = await child.reserve({ ...NOTHING, modelCalls: 1 }, scopes, id);
          if (!("reserved" in answer)) continue;
          admitted.push(id);
          if (i % 3 === 0) await child.budgets.settle(id, { ...NOTHING, modelCalls: 1, tokens: i });
        }
      }),
    );
    expect(admitted).toHaveLength(100);
    const { spent, reserved } = await parent.state();
    expect(spent.modelCalls + reserved.modelCalls).toBe(100);
    const below = await Promise.all(children.map((child) => child.state()));
    expect(below.every((child) => child.spent.modelCalls + child.reserved.modelCalls <= 10)).toBe(true);
    expect(below.reduce((sum, child) => sum + child.spent.tokens, 0)).toBe(spent.tokens);
  });
});

describe("a reservation", () => {
  it("is settled once, however often its end is told, and made once, however often it is asked for", async () => {
    const one = await scope("once", { tokens: 100 });
    for (let i = 0; i < 3; i++)
      expect(await one.reserve({ ...NOTHING, tokens: 60 }, ["once"], "call")).toEqual({ reserved: true });
    expect((await one.state()).reserved.tokens).toBe(60);
    for (let i = 0; i < 3; i++) await one.budgets.settle("call", { ...NOTHING, tokens: 40 });
    expect(await one.state()).toMatchObject({ spent: { tokens: 40 }, reserved: { tokens: 0 } });
  });

  it("of a run that is gone is settled at its estimate, and an answer that comes late replaces that once", async () => {
    const dead = await scope("dead", { tokens: 100 });
    await dead.reserve({ ...NOTHING, tokens: 70 }, ["dead"], "lost");
    expect(await dead.budgets.sweep(["dead"])).toBe(false);
    await db.advance(61_000);
    expect(await dead.budgets.sweep(["dead"])).toBe(true);
    expect(await dead.budgets.sweep(["dead"])).toBe(false);
    expect(await dead.state()).toMatchObject({ spent: { tokens: 70 }, reserved: { tokens: 0 } });
    for (let i = 0; i < 2; i++) await dead.budgets.settle("lost", { ...NOTHING, tokens: 50 });
    expect(await dead.state()).toMatchObject({ spent: { tokens: 50 }, reserved: { tokens: 0 } });
  });

  it("is refused to a run that has lost its thread", async () => {
    const late = await scope("late", {});
    await db.advance(61_000);
    expect(await late.reserve(usd(1))).toEqual({ lost: "lease" });
  });

  it("is refused at a cap of 0 and after the deadline, and never for what has no limit", async () => {
    const none = await scope("none", { modelCalls: 0 });
    expect(await none.reserve(usd(0))).toMatchObject({ exceeded: { limit: "modelCalls", allowed: 0n } });
    const over = await scope("over", { deadline: new Date(Date.now() - 1000) });
    expect(await over.reserve(usd(1))).toMatchObject({ exceeded: { limit: "deadline" } });
    const free = await scope("free", {});
    expect(await free.reserve(usd(1_000_000))).toEqual({ reserved: true });
  });

  it("counts up the whole chain, and a limit of the parent's stops the child", async () => {
    await scope("up", { tokens: 100 });
    const down = await scope("down", { tokens: 1000 }, "up");
    await down.reserve({ ...NOTHING, tokens: 80 }, ["down", "up"], "first");
    await down.budgets.settle("first", { ...NOTHING, tokens: 75 });
    expect(await down.reserve({ ...NOTHING, tokens: 30 }, ["down", "up"])).toMatchObject({
      exceeded: { scope: "up", limit: "tokens", spent: 75n },
    });
    expect(await down.budgets.read("up")).toMatchObject({ spent: { tokens: 75 }, reserved: { tokens: 0 } });
  });
});
