// P9: what importing the pack adds to importing LangGraph, in a new process each time.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { buildPack } from "./builtPack.js";
import { median, quantile } from "./measure.js";
import type { BenchRun, Result } from "./result.js";

const TARGET_MS = 60;
/** A process takes under a second; the median of ten stands still. */
const IMPORTS_PER_ROUND = 2;

/** Both in one process, LangGraph first: the difference of two processes would be mostly noise. */
const SCRIPT = `
const started = performance.now();
await import("@langchain/langgraph");
const between = performance.now();
await import(process.argv[1]);
console.log(JSON.stringify([between - started, performance.now() - between]));`;

export async function importTime(bench: BenchRun): Promise<Result[]> {
  if (!bench.wants("P9")) return [];
  const times = bench.rounds * IMPORTS_PER_ROUND;
  bench.note(`import time: ${times} processes`);
  const pack = await buildPack();
  try {
    await importOnce(pack.root, pack.entry);
    const both: { readonly langgraph: number; readonly ours: number }[] = [];
    for (let i = 0; i < times; i++) both.push(await importOnce(pack.root, pack.entry));
    const langgraph = median(both.map((one) => one.langgraph));
    const ratios = both.map((one) => (one.langgraph + one.ours) / one.langgraph);
    const added = median(both.map((one) => one.ours));
    return [
      {
        id: "P9",
        what: "import of the pack",
        unit: "ms",
        ours: langgraph + added,
        reference: langgraph,
        against: "import of @langchain/langgraph",
        ratio: median(ratios),
        ratioQuartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
        target: TARGET_MS,
        targetOf: "difference",
        pass: added < TARGET_MS,
        rounds: bench.rounds,
        slices: times,
      },
    ];
  } finally {
    await pack.remove();
  }
}

async function importOnce(cwd: string, entry: string): Promise<{ langgraph: number; ours: number }> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", SCRIPT, entry], { cwd });
  const [langgraph, ours] = JSON.parse(stdout) as [number, number];
  return { langgraph, ours };
}
