// G29: a holder counts its lease from before the granting statement was sent, on the smaller of wall and monotonic time
// left, and at its end it stops.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { holdLease, moment } from "../../src/core/lease.js";
import { deferred } from "./harness.js";

const LEASE_MS = 15_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"], now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Holds a lease with these renewals, and says when it was lost. */
function hold(renew: () => Promise<boolean>, grantedAt = moment()) {
  const lost: string[] = [];
  const lease = holdLease({
    leaseMs: LEASE_MS,
    grantedAt,
    renew,
    onLost: (error) => lost.push(`${error.code} ${error.message}`),
    what: "the run of thread t1",
  });
  return { lost, lease };
}

const unreachable = async (): Promise<boolean> => {
  throw new Error("the ledger cannot be reached");
};

describe("G29: a lease as its holder knows it", () => {
  it("is kept by renewals at a third of its time, and ends when it is stopped", async () => {
    let renewals = 0;
    const { lost, lease } = hold(async () => ++renewals > 0);
    await vi.advanceTimersByTimeAsync(4 * LEASE_MS);
    expect(renewals).toBe(12);
    lease.stop();
    await vi.advanceTimersByTimeAsync(4 * LEASE_MS);
    expect([renewals, lost]).toEqual([12, []]);
  });

  it("is over one lease after the granting statement was sent, not after its answer came", async () => {
    const asked = moment();
    await vi.advanceTimersByTimeAsync(10_000);
    const { lost } = hold(unreachable, asked);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(lost).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(lost).toEqual([expect.stringContaining("LEASE_LOST Lost the run of thread t1")]);
  });

  it("renewed, counts from when the renewal was sent: a slow answer grants no time", async () => {
    let answers = 0;
    const { lost } = hold(async () => {
      if (++answers > 1) return unreachable();
      await new Promise((resolve) => setTimeout(resolve, 9_000));
      return true;
    });
    // Asked at 5 s and answered at 14 s, it ends at 20 s.
    await vi.advanceTimersByTimeAsync(19_900);
    expect(lost).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(lost).toHaveLength(1);
  });

  it("is over at its end also while a renewal hangs without an answer", async () => {
    const { lost } = hold(() => deferred<boolean>().promise);
    await vi.advanceTimersByTimeAsync(LEASE_MS + 1);
    expect(lost).toHaveLength(1);
  });

  it("is over when another has it, and that is told once", async () => {
    const { lost } = hold(async () => false);
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS);
    expect(lost).toEqual([expect.stringContaining("another holder has it")]);
  });

  it("is over when the wall clock says so, though the monotonic clock stood still in a suspended machine", async () => {
    const { lost } = hold(async () => true);
    await vi.advanceTimersByTimeAsync(1_000);
    vi.setSystemTime(Date.now() + 60_000);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(lost).toEqual([expect.stringContaining("it ran out")]);
  });

  it("is over when the monotonic clock says so, though the wall clock was set back", async () => {
    const { lost } = hold(unreachable);
    await vi.advanceTimersByTimeAsync(1_000);
    vi.setSystemTime(Date.now() - 3_600_000);
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    expect(lost).toHaveLength(1);
  });
});
