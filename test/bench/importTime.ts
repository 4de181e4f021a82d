// P9: what importing the pack adds to importing LangGraph, in a new process each time.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { buildPack } from "./builtPack.js";
import { median, quantile } from "./measure.js";
import type { BenchRun, Result } from "./result.js";

const TARGET_MS = 60;
/** A process takes under a second; the median of ten stands still. */
const IMPORTS_PER_ROUND = 2;

/** The modules that an application imports, each beside what it imports anyway. */
const ENTRIES = [
  { module: "index.js", what: "import of the pack", beside: "@langchain/langgraph" },
  { module: "langchain/index.js", what: "import of ./langchain", beside: "langchain" },
] as const;

/** Both in one process, LangGraph first: the difference of two processes would be mostly noise. */
const SCRIPT = `
const started = performance.now();
await import(process.argv[2]);
const between = performance.now();
await import(process.argv[1]);
console.log(JSON.stringify([between - started, performance.now() - between]));`;

export async function importTime(bench: BenchRun): Promise<Result[]> {
  if (!bench.wants("P9")) return [];
  const times = bench.rounds * IMPORTS_PER_ROUND;
  bench.note(`import time: ${times * ENTRIES.length} processes`);
  const pack = await buildPack();
  const results: Result[] = [];
  try {
    for (const { module, what, beside } of ENTRIES) {
      const once = () => importOnce(pack.root, pack.entry(module), beside);
      await once();
      const both: Imported[] = [];
      for (let i = 0; i < times; i++) both.push(await once());
      results.push({ ...summary(both), what, against: `import of ${beside}`, rounds: bench.rounds, slices: times });
    }
    return results;
  } finally {
    await pack.remove();
  }
}

interface Imported {
  readonly beside: number;
  readonly ours: number;
}

function summary(both: readonly Imported[]) {
  const beside = median(both.map((one) => one.beside));
  const ratios = both.map((one) => (one.beside + one.ours) / one.beside);
  const added = median(both.map((one) => one.ours));
  return {
    id: "P9",
    unit: "ms",
    ours: beside + added,
    reference: beside,
    ratio: median(ratios),
    ratioQuartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    target: TARGET_MS,
    targetOf: "difference",
    pass: added < TARGET_MS,
  } as const;
}

async function importOnce(cwd: string, entry: string, besides: string): Promise<Imported> {
  const argv = ["--input-type=module", "-e", SCRIPT, entry, besides];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { cwd });
  const [beside, ours] = JSON.parse(stdout) as [number, number];
  return { beside, ours };
}
