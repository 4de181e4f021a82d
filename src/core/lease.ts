// Holding a lease: renew it at a third of its time, and know without asking when it is over. The holder counts from
// before the granting statement was sent, on the smaller of wall and monotonic time left (G29): a monotonic clock
// stops while a machine is suspended, and a wall clock can be set back.
import { InvalidOptionError, LeaseLostError } from "./errors.js";

export interface LeaseOptions {
  readonly leaseMs: number;
  /** Taken before the granting statement was sent. */
  readonly grantedAt: Moment;
  /** Renews in the ledger. False: it is no longer ours. */
  readonly renew: () => Promise<boolean>;
  readonly onLost: (error: LeaseLostError) => void;
  /** For messages: `the run of thread t1`. */
  readonly what: string;
}

export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function moment(): Moment {
  return { wallMs: Date.now(), monotonicMs: performance.now() };
}

/** How long the longer of the two clocks says it has been. */
function elapsedMs(since: Moment): number {
  return Math.max(Date.now() - since.wallMs, performance.now() - since.monotonicMs);
}

export interface HeldLease {
  /** Looks at the clocks now: a process that was paused can run for a while before its timers tell it. */
  check(): void;
  stop(): void;
}

/** Keeps a lease alive until `stop` is called, and calls `onLost` once when it is or may be over. */
export function holdLease(options: LeaseOptions): HeldLease {
  let granted = options.grantedAt;
  let over = false;
  let timer: NodeJS.Timeout | undefined;

  const lose = (why: string) => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    options.onLost(new LeaseLostError(`Lost ${options.what}: ${why}. Nothing more is done by this holder.`));
  };
  const wait = (ms: number, then: () => void) => {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
    timer.unref();
  };
  const renew = async () => {
    const asked = moment();
    // Also when no answer ever comes: a connection can hang for minutes.
    wait(options.leaseMs - elapsedMs(granted), () => lose("it could not be renewed in time"));
    try {
      if (await options.renew()) granted = asked;
      else return lose("another holder has it");
    } catch {
      // The ledger cannot be reached: the lease may still be ours, and time decides below.
    }
    schedule();
  };
  const check = () => {
    if (elapsedMs(granted) >= options.leaseMs) lose("it ran out");
  };
  const schedule = () => {
    if (over) return;
    const leftMs = options.leaseMs - elapsedMs(granted);
    wait(Math.max(0, Math.min(leftMs, options.leaseMs / 3)), () => {
      check();
      if (!over) void renew();
    });
  };
  schedule();
  return {
    check,
    stop: () => {
      over = true;
      clearTimeout(timer);
    },
  };
}

/** A positive whole number of milliseconds, or an error that names the option. */
export function positiveMs(name: string, value: unknown, max = MAX_MS): number {
  if (typeof value === "number" && value > max && max === MAX_TIMER_MS) {
    throw new InvalidOptionError(
      `Expected \`${name}\` to be at most ${MAX_TIMER_MS} milliseconds (24 days), got ${value}.`,
    );
  }
  if (typeof value !== "number" || !Number.isInteger(value) || value <= 0 || value > max) {
    throw new InvalidOptionError(
      `Expected \`${name}\` to be a positive integer of milliseconds, got ${String(value)}.`,
    );
  }
  return value;
}

/** What Node's timers can carry: a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
/** A hundred years: beyond it a time is a mistake, and PostgreSQL's intervals stay exact. */
const MAX_MS = 100 * 365 * 24 * 3_600_000;
