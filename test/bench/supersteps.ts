// P4: a whole superstep, ledger and checkpoints, against LangGraph's own PostgresSaver without a ledger; both sync.
import { type Loop, type Loops, openLoops } from "./graphs.js";
import { measure } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import { type Contestant, compare, interleave } from "./rounds.js";
import type { Server } from "./server.js";

type LoopName = Exclude<keyof Loops, "close">;

interface Target {
  readonly id: string;
  readonly what: string;
  readonly ours: LoopName;
  readonly stock: LoopName;
  readonly ratio: number;
}

interface Load {
  readonly name: string;
  /** Slices of one round. */
  readonly slices: number;
  readonly threads: number;
  readonly stepsEach: number;
  readonly targets: readonly Target[];
}

const LOADS: readonly Load[] = [
  {
    name: "sequential",
    slices: 4,
    threads: 1,
    stepsEach: 50,
    targets: [
      { id: "P4.write", what: "superstep with a write step", ours: "write", stock: "stock", ratio: 0.95 },
      { id: "P4.read", what: "superstep with a read step", ours: "read", stock: "stock", ratio: 0.85 },
      { id: "P4.model", what: "superstep with a model call", ours: "model", stock: "stockModel", ratio: 0.85 },
    ],
  },
  {
    name: "16 threads",
    slices: 1,
    threads: 16,
    stepsEach: 25,
    targets: [
      { id: "P4.write.16", what: "the same on 16 threads at once, write", ours: "write", stock: "stock", ratio: 0.75 },
      { id: "P4.read.16", what: "the same on 16 threads at once, read", ours: "read", stock: "stock", ratio: 0.75 },
      {
        id: "P4.model.16",
        what: "the same on 16 threads at once, model",
        ours: "model",
        stock: "stockModel",
        ratio: 0.75,
      },
    ],
  },
];
const THREADS = Math.max(...LOADS.map(({ threads }) => threads));
const WARM = 50;

export async function supersteps(bench: BenchRun): Promise<Result[]> {
  const loads = LOADS.map((load) => ({ ...load, targets: load.targets.filter(({ id }) => bench.wants(id)) }));
  const wanted = loads.filter(({ targets }) => targets.length > 0);
  if (wanted.length === 0) return [];
  const loops = await openLoops(bench.server, THREADS);
  try {
    const used = new Set(wanted.flatMap(({ targets }) => targets.flatMap(({ ours, stock }) => [stock, ours])));
    for (const name of used) await loops[name].run(`${name} warm`, WARM);
    const results: Result[] = [];
    for (const load of wanted) results.push(...(await underLoad(bench, loops, load)));
    return results;
  } finally {
    await loops.close();
  }
}

async function underLoad(bench: BenchRun, loops: Loops, load: Load): Promise<Result[]> {
  const { targets, slices, threads, stepsEach } = load;
  bench.note(`supersteps, ${load.name}: ${slices} runs of ${threads} x ${stepsEach}, ${bench.rounds} rounds`);
  const names = new Set(targets.flatMap(({ ours, stock }) => [stock, ours]));
  const contestants = [...names].map((name) => contestant(bench.server, name, loops[name], load));
  const figures = await interleave(contestants, bench.rounds * slices);
  return targets.map(({ id, what, ours, stock, ratio }) => {
    const compared = compare(figures, ours, stock);
    return {
      id,
      what,
      unit: "ms/step",
      against: "stock LangGraph, PostgresSaver, no ledger",
      target: ratio,
      targetOf: "ratio",
      rounds: bench.rounds,
      pass: compared.ratio <= ratio,
      ...compared,
    };
  });
}

function contestant(server: Server, name: LoopName, loop: Loop, { name: load, threads, stepsEach }: Load): Contestant {
  return {
    name,
    run: (slice) =>
      measure(server, threads * stepsEach, async () => {
        const ids = Array.from({ length: threads }, (_, i) => `${name} ${load} ${slice} ${i}`);
        await Promise.all(ids.map((id) => loop.run(id, stepsEach)));
      }),
  };
}
