// P6: sixteen children at once, each with a budget of its own under one parent's, against the same children without budgets.
import { type Amounts, NOTHING } from "../../src/core/budget.js";
import type { StepHost } from "../../src/core/call.js";
import { executeStep } from "../../src/core/execute.js";
import { RunPurse } from "../../src/langgraph/budget/runPurse.js";
import { LEDGER_PARTS, type Ledger } from "../../src/langgraph/ledger.js";
import { openLedger } from "../../src/openLedger.js";
import { openHost, stepCall } from "./bareSteps.js";
import { measure } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import { type Contestant, compare, interleave } from "./rounds.js";

const CHILDREN = 16;
const STEPS_EACH = 25;
const SLICES = 4;
const WARM = 5;
/** 0.8 of the throughput, as a ratio of times. */
const TARGET = 1.25;
const MODEL_STEP = { kind: "llm", effect: "read" } as const;
const CALL: Amounts = { ...NOTHING, nanoUsd: 500_000n, tokens: 2000, modelCalls: 1 };
const FREE = "without budgets";

export async function childBudgets(bench: BenchRun): Promise<Result[]> {
  if (!bench.wants("P6")) return [];
  bench.note(`model steps of ${CHILDREN} children at once, ${bench.rounds} rounds`);
  const ledger = openLedger({ url: await bench.server.createDatabase(), maxConnections: CHILDREN });
  try {
    const parent = await openPurse(ledger, await openHost(ledger, "parent"), undefined);
    const contestants = [
      await openChildren(bench, ledger, FREE, async (host) => host),
      await openChildren(bench, ledger, "P6", async (host) => {
        return { ...host, purse: await openPurse(ledger, host, parent) };
      }),
    ];
    const compared = compare(await interleave(contestants, bench.rounds * SLICES), "P6", FREE);
    const what = "model step of 16 children under one parent's budget";
    const pass = compared.ratio <= TARGET;
    return [
      {
        id: "P6",
        what,
        unit: "ms/step",
        against: FREE,
        target: TARGET,
        targetOf: "ratio",
        rounds: bench.rounds,
        pass,
        ...compared,
      },
    ];
  } finally {
    await ledger.close();
  }
}

async function openPurse(ledger: Ledger, host: StepHost, outer: RunPurse | undefined): Promise<RunPurse> {
  const { budgets } = await ledger[LEDGER_PARTS].open();
  const unexpected = (error: Error): never => {
    throw error;
  };
  const { ticket, signal } = host;
  const run = {
    threadId: ticket.threadId,
    ticket,
    budgets,
    signal,
    lose: unexpected,
    leave: () => new Error("A benchmark's run was lost."),
    stop: unexpected,
    settleAbandoned: async () => {},
    wakeNow: async () => new Date(),
  };
  const purse = await RunPurse.open(run, { usd: 1_000_000, tokens: 1e12, modelCalls: 1e9 }, outer);
  if (purse === undefined) throw new Error("A budget was not opened.");
  return purse;
}

async function openChildren(
  bench: BenchRun,
  ledger: Ledger,
  name: string,
  withBudget: (host: StepHost) => Promise<StepHost>,
): Promise<Contestant> {
  const children = await Promise.all(
    Array.from({ length: CHILDREN }, async (_, child) => {
      const host = await withBudget(await openHost(ledger, `${name} ${child}`));
      let done = 0;
      return async (count: number) => {
        for (const end = done + count; done < end; done++)
          await executeStep({ ...stepCall(host, MODEL_STEP, done), spends: async () => CALL }, host);
      };
    }),
  );
  const work = async (count: number) => {
    await Promise.all(children.map((child) => child(count)));
  };
  await work(WARM);
  return { name, run: () => measure(bench.server, CHILDREN * STEPS_EACH, () => work(STEPS_EACH)) };
}
