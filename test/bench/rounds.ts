// Interleaved slices: in each slice every contestant runs once, so that all of them meet the same disk and the same
// neighbours. Figures of different slices are never compared: a ratio is the median of the slices' own ratios. Slices
// are short, because a neighbour's burst then spoils a few of them and not the median.
import { type Measured, median, quantile } from "./measure.js";

/** Something that does its share of the work once a slice. */
export interface Contestant {
  readonly name: string;
  run(slice: number): Promise<Measured>;
}

export type Figures = ReadonlyMap<string, readonly Measured[]>;

/** On a machine that is busy with others a family stops here, with fewer slices, so that a whole run stays bounded. */
const BUDGET_MS = 50_000;
const FEWEST_SLICES = 4;

/**
 * Runs all contestants `slices` times, or until the time is over, the order turned round every time so that none
 * profits from its place.
 */
export async function interleave(contestants: readonly Contestant[], slices: number): Promise<Figures> {
  const figures = new Map<string, Measured[]>(contestants.map(({ name }) => [name, []]));
  const started = performance.now();
  for (let slice = 0; slice < slices; slice++) {
    if (slice >= FEWEST_SLICES && performance.now() - started > BUDGET_MS) break;
    for (const contestant of slice % 2 === 0 ? contestants : contestants.toReversed()) {
      figures.get(contestant.name)?.push(await contestant.run(slice));
    }
  }
  return figures;
}

export interface Comparison {
  /** Median milliseconds a step. */
  readonly ours: number;
  readonly reference: number;
  readonly ratio: number;
  /** The quartiles of the slices' ratios: how far to trust the median. */
  readonly ratioQuartiles: readonly [number, number];
  readonly slices: number;
  readonly writeTxPerStep: number;
  readonly walBytesPerStep: number;
  readonly referenceWalBytesPerStep: number;
}

export function compare(figures: Figures, ours: string, reference: string): Comparison {
  const mine = figures.get(ours) ?? [];
  const theirs = figures.get(reference) ?? [];
  const ratios = mine.map((measured, slice) => measured.msPerStep / (theirs[slice]?.msPerStep ?? Number.NaN));
  return {
    ours: median(mine.map(({ msPerStep }) => msPerStep)),
    reference: median(theirs.map(({ msPerStep }) => msPerStep)),
    ratio: median(ratios),
    ratioQuartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    slices: ratios.length,
    writeTxPerStep: median(mine.map(({ writeTxPerStep }) => writeTxPerStep)),
    walBytesPerStep: median(mine.map(({ walBytesPerStep }) => walBytesPerStep)),
    referenceWalBytesPerStep: median(theirs.map(({ walBytesPerStep }) => walBytesPerStep)),
  };
}
