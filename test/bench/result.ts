// One line of the report, and what produces it.
import type { Server } from "./server.js";

export interface Result {
  /** The target's id in the table of targets, and what of it: `P4.write.16`. */
  readonly id: string;
  readonly what: string;
  readonly unit: string;
  readonly ours: number;
  /** What ours is held against, named by `against`. */
  readonly reference: number;
  readonly against: string;
  readonly ratio: number;
  /** A bound on `ratio`, or on `ours - reference` when `targetOf` says so. */
  readonly target: number;
  readonly targetOf: "ratio" | "difference";
  readonly pass: boolean;
  /** Rounds that were asked for, and ratios that the median is of. */
  readonly rounds: number;
  readonly slices: number;
  readonly ratioQuartiles: readonly [number, number];
  readonly writeTxPerStep?: number;
  readonly writeTxTarget?: number;
  readonly walBytesPerStep?: number;
  readonly walBytesTarget?: number;
  readonly referenceWalBytesPerStep?: number;
  /** After a kill: effects that happened twice, and steps whose outcome had to be asked for. */
  readonly repeatedEffects?: number;
  readonly referenceRepeatedEffects?: number;
  readonly reconciledSteps?: number;
}

/** What a family of targets is given to run with. */
export interface BenchRun {
  readonly server: Server;
  readonly rounds: number;
  /** Whether a result is asked for. */
  wants(id: string): boolean;
  /** Tells a person what is going on. */
  note(line: string): void;
}
