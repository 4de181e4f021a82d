// P1 to P3: the ledger alone. Steps through the core, on the real PostgreSQL, one after the other or on sixteen threads
// at once; against `pair` of the same rounds and as many connections.
import { executeStep } from "../../src/core/execute.js";
import type { Ledger } from "../../src/langgraph/ledger.js";
import { openLedger } from "../../src/openLedger.js";
import { type BareStep, openHost, stepCall } from "./bareSteps.js";
import { openPair, PAIR } from "./floor.js";
import { measure } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import { type Contestant, compare, interleave } from "./rounds.js";

interface Target extends BareStep {
  readonly id: string;
  readonly what: string;
  readonly ratio: number;
  readonly writeTx: number;
  readonly walBytes?: number;
}

interface Load {
  readonly name: string;
  /** Slices of one round. */
  readonly slices: number;
  readonly threads: number;
  /** Steps of each thread in one slice. */
  readonly stepsEach: number;
  readonly targets: readonly Target[];
}

const WRITE = { kind: "node", effect: "write", writeTx: 2 } as const;
const LOADS: readonly Load[] = [
  {
    name: "1000 steps one after the other",
    slices: 10,
    threads: 1,
    stepsEach: 100,
    targets: [
      { ...WRITE, id: "P1", what: "write step, ledger alone", ratio: 1.5, walBytes: 900 },
      { id: "P2.read", what: "read step, ledger alone", kind: "node", effect: "read", ratio: 0.9, writeTx: 1 },
      { id: "P2.model", what: "model step, ledger alone", kind: "llm", effect: "read", ratio: 1.6, writeTx: 2 },
    ],
  },
  {
    name: "16 x 100 steps at once",
    slices: 4,
    threads: 16,
    stepsEach: 25,
    targets: [{ ...WRITE, id: "P3", what: "the same on 16 threads at once", ratio: 2 }],
  },
];
const WARM = 200;

export async function ledgerSteps(bench: BenchRun): Promise<Result[]> {
  const results: Result[] = [];
  for (const load of LOADS) {
    const targets = load.targets.filter(({ id }) => bench.wants(id));
    if (targets.length > 0) results.push(...(await underLoad(bench, { ...load, targets })));
  }
  return results;
}

async function underLoad(bench: BenchRun, load: Load): Promise<Result[]> {
  const { name, slices, threads, targets } = load;
  bench.note(`ledger alone: ${name}, ${bench.rounds} rounds`);
  const pair = await openPair(bench.server, load);
  const ledger = openLedger({ url: await bench.server.createDatabase(), maxConnections: threads });
  try {
    const ours: Contestant[] = [];
    for (const target of targets) ours.push(await openSteps(bench, ledger, target, load));
    const figures = await interleave([pair, ...ours], bench.rounds * slices);
    return targets.map((target) => {
      const compared = compare(figures, target.id, PAIR);
      return {
        id: target.id,
        what: target.what,
        unit: "ms/step",
        against: PAIR,
        target: target.ratio,
        targetOf: "ratio",
        rounds: bench.rounds,
        writeTxTarget: target.writeTx,
        ...(target.walBytes === undefined ? {} : { walBytesTarget: target.walBytes }),
        pass: meets(target, compared),
        ...compared,
      };
    });
  } finally {
    await pair.close();
    await ledger.close();
  }
}

/** A hundredth of a transaction a step is the server's own housekeeping. */
function meets(target: Target, got: { ratio: number; writeTxPerStep: number; walBytesPerStep: number }): boolean {
  const { ratio, writeTx, walBytes = Number.POSITIVE_INFINITY } = target;
  return got.ratio <= ratio && got.writeTxPerStep <= writeTx + 0.01 && got.walBytesPerStep <= walBytes;
}

async function openSteps(bench: BenchRun, ledger: Ledger, target: Target, load: Load): Promise<Contestant> {
  const { threads, stepsEach } = load;
  const workers = await Promise.all(
    Array.from({ length: threads }, async (_, thread) => {
      const host = await openHost(ledger, `${target.id} ${thread}`);
      let done = 0;
      return async (count: number) => {
        for (const end = done + count; done < end; done++) await executeStep(stepCall(host, target, done), host);
      };
    }),
  );
  const work = async (count: number) => {
    await Promise.all(workers.map((worker) => worker(count)));
  };
  await work(Math.ceil(WARM / threads));
  return { name: target.id, run: () => measure(bench.server, threads * stepsEach, () => work(stepsEach)) };
}
