// Working time: waits and suspensions are left out, and what overlaps is left out once.
import { expect, test } from "vitest";
import { ActiveClock } from "../../src/core/activeClock.js";

/** A clock in a process whose time and computing the test moves. */
function clockAt(activeMs = 0) {
  const now = { atMs: 1000, cpuMs: 0 };
  const clock = new ActiveClock({ activeMs, suspendedMs: 0 }, () => ({ ...now }));
  /** Time passes as it does in a process that looks at its clock. */
  const pass = (ms: number, cpuMs = 0) => {
    for (let left = ms; left > 0; left -= 1000) {
      now.atMs += Math.min(1000, left);
      now.cpuMs += (cpuMs * Math.min(1000, left)) / ms;
      clock.tick();
    }
  };
  const jump = (ms: number, cpuMs = 0) => {
    now.atMs += ms;
    now.cpuMs += cpuMs;
    return clock.tick();
  };
  return { clock, pass, jump };
}

test("a call under way is work however little is computed, and what was worked before counts on", () => {
  const { clock, pass } = clockAt(500);
  clock.begin();
  pass(30_000);
  clock.end();
  expect(clock.activeMs).toBe(30_500);
});

test("a wait is no work; waits that overlap are left out once", () => {
  const { clock, pass } = clockAt();
  clock.begin();
  clock.begin();
  const [first, second] = [clock.wait(), clock.wait()];
  pass(10_000);
  first();
  second();
  pass(1000);
  expect(clock.activeMs).toBe(1000);
});

test("while one branch waits and another works, it is work", () => {
  const { clock, pass } = clockAt();
  clock.begin();
  clock.begin();
  const over = clock.wait();
  pass(10_000);
  clock.end();
  pass(5000);
  over();
  expect(clock.activeMs).toBe(10_000);
});

test("what a process computes while it waits is work", () => {
  const { clock, pass } = clockAt();
  clock.begin();
  clock.wait();
  pass(10_000, 2000);
  expect(clock.activeMs).toBeCloseTo(2000, 6);
});

test("BUD-06: a gap in which the process did not run is suspension: no work, and nobody was idle", () => {
  const { clock, pass, jump } = clockAt();
  clock.begin();
  pass(2000);
  const found = jump(600_000, 3);
  expect(found).toBe(599_997);
  expect(clock.suspendedMs).toBe(599_997);
  expect(clock.activeMs).toBeCloseTo(2003, 6);
  expect(clock.idleMs).toBeCloseTo(2003, 6);
});

test("a process that blocked for long computed, and worked", () => {
  const { clock, jump } = clockAt();
  expect(jump(20_000, 19_000)).toBe(0);
  expect(clock.activeMs).toBe(20_000);
});

test("idleness ends with every call that begins or ends, and waiting is none", () => {
  const { clock, pass } = clockAt();
  pass(3000);
  expect(clock.idleMs).toBe(3000);
  clock.begin();
  expect(clock.idleMs).toBe(0);
  pass(2000);
  clock.end();
  clock.begin();
  clock.wait();
  pass(60_000);
  expect(clock.idleMs).toBe(0);
});
