import { describe, expect, it } from "vitest";
import { parseTimes, spansOf } from "../../src/cli/times.js";

/** A week in this machine's zone, whichever it is. */
const WEEK = { from: new Date(2026, 2, 1), to: new Date(2026, 2, 8) };
const HOUR_MS = 3_600_000;

function spans(options: Parameters<typeof parseTimes>[0], within = WEEK) {
  const filter = parseTimes(options);
  return filter === undefined ? undefined : spansOf(filter, within);
}

describe("times given to a command", () => {
  it("mean nothing when there are none", () => {
    expect(parseTimes({})).toBeUndefined();
  });

  it("stand for as long as their last unit: a minute, a second, a day", () => {
    const at = (text: string) => spans({ at: text })?.map(({ from, to }) => [from, to.getTime() - from.getTime()]);
    expect(at("2026-03-02T03:00")).toEqual([[new Date(2026, 2, 2, 3), 60_000]]);
    expect(at("2026-03-02 03:00:30")).toEqual([[new Date(2026, 2, 2, 3, 0, 30), 1000]]);
    expect(at("2026-03-02")).toEqual([[new Date(2026, 2, 2), 24 * HOUR_MS]]);
    expect(at("2026-03-02T03:00+09:00")).toEqual([[new Date("2026-03-01T18:00:00Z"), 60_000]]);
    expect(at("3:05")).toHaveLength(7);
    expect(at("3:05")?.[0]).toEqual([new Date(2026, 2, 1, 3, 5), 60_000]);
  });

  it("go over midnight when the second time of day is not after the first", () => {
    const nights = spans({ between: ["23:00", "01:00"] });
    expect(nights?.[0]).toEqual({ from: new Date(2026, 1, 28, 23), to: new Date(2026, 2, 1, 1) });
    expect(nights).toHaveLength(8);
  });

  it("leave the end of a stretch out", () => {
    expect(spans({ between: ["2026-03-02", "2026-03-03"] })).toEqual([
      { from: new Date(2026, 2, 2), to: new Date(2026, 2, 3) },
    ]);
  });

  it.each([
    ["a time of day that is none", { at: "25:00" }, "03:00"],
    ["minutes that are none", { at: "03:60" }, "03:00"],
    ["words", { at: "3 a.m." }, "03:00"],
    ["nothing", { at: "" }, "03:00"],
    ["a month that is none", { at: "2026-13-01" }, "2026-03-01"],
    ["a day that is none", { at: "2026-02-30" }, "2026-03-01"],
    ["one time for a stretch", { between: ["03:00"] }, "two times"],
    ["three", { between: ["03:00", "04:00", "05:00"] }, "two times"],
    ["a time of day and a date", { between: ["03:00", "2026-03-01"] }, "both"],
    ["a stretch that ends before it begins", { between: ["2026-03-02", "2026-03-01"] }, "earlier"],
    ["both ways to name a time", { at: "03:00", between: ["03:00", "04:00"] }, "not both"],
  ])("are refused for %s, and told what is allowed", (_what, options, said) => {
    expect(() => parseTimes(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTION", status: 400 }));
    expect(() => parseTimes(options)).toThrow(said);
  });
});
