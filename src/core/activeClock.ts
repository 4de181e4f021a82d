// How long something has worked. Waiting is no work, and neither is the time in which the machine or the process was stopped.

/** A clock that only goes forward, and what the process has computed. */
export interface Instant {
  readonly atMs: number;
  readonly cpuMs: number;
}

export function instant(): Instant {
  const { user, system } = process.cpuUsage();
  return { atMs: performance.now(), cpuMs: (user + system) / 1000 };
}

/** How often a clock is to be read at least: a longer silence is no work. */
export const TICK_MS = 1000;
/** A silence that is longer was no slow moment of the process, unless it computed through it. */
const SUSPENSION_MS = 5000;
/** A process that blocked computes; one that was stopped does not. */
const BUSY_SHARE = 0.2;

/**
 * Counts time between calls of `tick`, by what was open meanwhile: pieces of work, and waits, which are parts of them. While
 * all that is open waits only the process's own computing counts, so that waits which overlap are left out once.
 */
export class ActiveClock {
  #last: Instant;
  #work = 0;
  #waits = 0;
  #idleMs = 0;

  constructor(
    private active: { activeMs: number; suspendedMs: number },
    private readonly read: () => Instant = instant,
  ) {
    this.#last = read();
  }

  get activeMs(): number {
    return this.active.activeMs;
  }

  get suspendedMs(): number {
    return this.active.suspendedMs;
  }

  /** Work since something last began or ended. */
  get idleMs(): number {
    return this.#idleMs;
  }

  begin(): void {
    this.#change(() => {
      this.#work += 1;
    });
  }

  end(): void {
    this.#change(() => {
      this.#work -= 1;
    });
  }

  /** The wait of a piece of work begins; the function that is returned ends it. */
  wait(): () => void {
    this.#change(() => {
      this.#waits += 1;
    });
    return () =>
      this.#change(() => {
        this.#waits -= 1;
      });
  }

  /** Counts the time since the last look, and returns the suspension that it found. */
  tick(): number {
    const now = this.read();
    const passedMs = Math.max(0, now.atMs - this.#last.atMs);
    const busyMs = Math.min(passedMs, Math.max(0, now.cpuMs - this.#last.cpuMs));
    this.#last = now;
    if (passedMs > SUSPENSION_MS && busyMs < passedMs * BUSY_SHARE) {
      this.#count(busyMs);
      this.active.suspendedMs += passedMs - busyMs;
      return passedMs - busyMs;
    }
    this.#count(this.#waits > 0 && this.#waits >= this.#work ? busyMs : passedMs);
    return 0;
  }

  #count(ms: number): void {
    this.active.activeMs += ms;
    this.#idleMs += ms;
  }

  #change(change: () => void): void {
    this.tick();
    change();
    this.#idleMs = 0;
  }
}
