// A turn of work, then a wait: until a bell rings, until what the turn said, and for a poll at most. Bells get lost and
// clocks are moved, so nothing here waits longer than that; a wait of days is a wait of many polls.

export interface LoopOptions {
  /** Answers how long nothing will be due, where it knows; undefined: until the poll. */
  readonly turn: () => Promise<number | undefined>;
  readonly pollMs: number;
  readonly onError: (error: unknown) => void;
  /** Does not keep the process alive. */
  readonly background?: boolean;
}

export interface Loop {
  /** Has the next turn begin now. */
  ring(): void;
  /** Resolves when the turn under way has ended. */
  stop(): Promise<void>;
}

/** A due time is asked for again a little after it, not a little before. */
const AFTER_MS = 5;

export function startLoop({ turn, pollMs, onError, background = false }: LoopOptions): Loop {
  let stopped = false;
  let rung = false;
  let wake: () => void = () => {};
  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      if (background) timer.unref();
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    while (!stopped) {
      rung = false;
      let dueInMs: number | undefined;
      try {
        dueInMs = await turn();
      } catch (error) {
        onError(error);
      }
      if (stopped || rung) continue;
      const knownMs = dueInMs === undefined || Number.isNaN(dueInMs) ? pollMs : Math.max(0, dueInMs) + AFTER_MS;
      await wait(Math.min(pollMs, knownMs));
    }
  };
  const ended = run();
  return {
    ring: () => {
      rung = true;
      wake();
    },
    stop: () => {
      stopped = true;
      wake();
      return ended;
    },
  };
}
