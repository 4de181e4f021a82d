// P7: a process killed in the middle of a long run, and how soon the next one is at work again; against stock LangGraph
// with PostgresSaver, which repeats the step it was killed in.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { bundle } from "../support/bundle.js";
import { median, quantile } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import type { Resumed, ResumeTask } from "./resumeChild.js";

const TARGET_MS = 50;
const STEPS = 1000;
const KILL_AT = 500;

interface Outcome extends Resumed {
  /** Effects that happened again. */
  readonly repeated: number;
}

export async function resume(bench: BenchRun): Promise<Result[]> {
  if (!bench.wants("P7")) return [];
  bench.note(`resume: killed at step ${KILL_AT} of ${STEPS}, ${bench.rounds} times each`);
  const script = await bundle("test/bench/resumeChild.ts");
  const ours: Outcome[] = [];
  const stock: Outcome[] = [];
  try {
    for (let round = 0; round < bench.rounds; round++) {
      ours.push(await killAndResume(bench, script.file, "ours"));
      stock.push(await killAndResume(bench, script.file, "stock"));
    }
  } finally {
    await script.remove();
  }
  const ms = (outcomes: readonly Outcome[]) => outcomes.map(({ resumeMs }) => resumeMs);
  const most = (values: readonly number[]) => Math.max(...values);
  const ratios = ours.map(({ resumeMs }, round) => resumeMs / (stock[round]?.resumeMs ?? Number.NaN));
  const difference = median(ms(ours)) - median(ms(stock));
  const repeatedEffects = most(ours.map(({ repeated }) => repeated));
  const reconciledSteps = most(ours.map(({ reconciled }) => reconciled));
  return [
    {
      id: "P7",
      what: `resume after kill -9 at step ${KILL_AT} of ${STEPS}`,
      unit: "ms",
      ours: median(ms(ours)),
      reference: median(ms(stock)),
      against: "stock LangGraph, PostgresSaver, no ledger",
      ratio: median(ratios),
      ratioQuartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
      target: TARGET_MS,
      targetOf: "difference",
      pass: difference < TARGET_MS && repeatedEffects === 0 && reconciledSteps <= 1,
      rounds: bench.rounds,
      slices: bench.rounds,
      repeatedEffects,
      referenceRepeatedEffects: most(stock.map(({ repeated }) => repeated)),
      reconciledSteps,
    },
  ];
}

async function killAndResume({ server }: BenchRun, script: string, side: ResumeTask["side"]): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-bench-resume-"));
  const effects = join(folder, "effects");
  const url = await server.createDatabase();
  const task: ResumeTask = { side, url, effects, steps: STEPS, killAt: KILL_AT };
  const run = () => promisify(execFile)(process.execPath, [script, JSON.stringify(task)]);
  try {
    const killed = await run().catch((error: unknown) => error as { readonly signal?: string });
    if (!("signal" in killed) || killed.signal !== "SIGKILL")
      throw new Error(`The ${side} process did not come to step ${KILL_AT}.`, { cause: killed });
    const resumed = JSON.parse((await run()).stdout) as Resumed;
    return { ...resumed, repeated: repeatedOf(await readFile(effects, "utf8")) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function repeatedOf(effects: string): number {
  const numbers = effects
    .trimEnd()
    .split("\n")
    .map((line) => Number.parseInt(line, 10));
  const distinct = new Set(numbers).size;
  if (distinct !== STEPS) throw new Error(`${STEPS - distinct} of ${STEPS} effects were lost.`);
  return numbers.length - distinct;
}
