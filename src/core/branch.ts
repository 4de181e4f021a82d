// A branch of a thread: a fork that somebody made, and what its runs do about what the branch it left has done.

export interface Branch {
  /** Where it begins. */
  readonly checkpointId: string;
  /** About writes with equal inputs; undefined: as the graph says. */
  readonly onFork: "ask" | "run" | undefined;
  /** Recorded reads and model calls with equal inputs serve here too. */
  readonly reuse: boolean;
}
