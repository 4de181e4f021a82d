// Times as people give them to a command, and as a command shows them: in this machine's zone, which is named.
import type { Command } from "commander";
import { InvalidOptionError } from "../core/errors.js";
import type { Span } from "../postgres/trace.js";

/** What `--at` and `--between` chose: a time of every day, or one stretch of time. */
export type TimeFilter =
  | { readonly everyDay: { readonly fromMs: number; readonly toMs: number } }
  | { readonly once: Span };

export interface TimeOptions {
  readonly at?: string;
  readonly between?: readonly string[];
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ALLOWED =
  "a time of day (03:00, 03:00:30), a date (2026-03-01) or both (2026-03-01T03:00, with Z or +01:00 for another zone than this machine's)";

export function withTimeOptions(command: Command, what: string): Command {
  return command
    .option("--at <time>", `only what ${what} at that time: 03:00 is that minute of every day; or an ISO time`)
    .option("--between <times...>", `only what ${what} from the first time to before the second: 03:00 04:00`);
}

/** @throws InvalidOptionError that says what a time looks like. */
export function parseTimes({ at, between }: TimeOptions): TimeFilter | undefined {
  if (at !== undefined && between !== undefined) throw new InvalidOptionError("Give --at or --between, not both.");
  if (at !== undefined) {
    const moment = parseMoment(at);
    if ("ofDayMs" in moment) return { everyDay: { fromMs: moment.ofDayMs, toMs: moment.ofDayMs + moment.lastsMs } };
    return { once: { from: moment.instant, to: new Date(moment.instant.getTime() + moment.lastsMs) } };
  }
  if (between === undefined) return undefined;
  const [first, second, ...more] = between;
  if (first === undefined || second === undefined || more.length > 0) {
    throw new InvalidOptionError(
      `Expected two times after --between, got ${between.length}. What else the command takes stands before it.`,
    );
  }
  const [from, to] = [parseMoment(first), parseMoment(second)];
  if ("ofDayMs" in from && "ofDayMs" in to) {
    // 23:00 to 01:00 goes over midnight.
    const toMs = to.ofDayMs > from.ofDayMs ? to.ofDayMs : to.ofDayMs + DAY_MS;
    return { everyDay: { fromMs: from.ofDayMs, toMs } };
  }
  if ("ofDayMs" in from || "ofDayMs" in to) {
    throw new InvalidOptionError("Expected both times of --between to be times of day, or both to have a date.");
  }
  if (from.instant >= to.instant)
    throw new InvalidOptionError("Expected the first time of --between to be the earlier one.");
  return { once: { from: from.instant, to: to.instant } };
}

type Moment =
  | { readonly ofDayMs: number; readonly lastsMs: number }
  | { readonly instant: Date; readonly lastsMs: number };

/** A time stands for as long as its last unit: 03:00 for a minute, a date for a day. */
function parseMoment(text: string): Moment {
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(text);
  if (time !== null) {
    const [hours, minutes, seconds] = [Number(time[1]), Number(time[2]), Number(time[3] ?? 0)];
    if (hours < 24 && minutes < 60 && seconds < 60) {
      const ofDayMs = ((hours * 60 + minutes) * 60 + seconds) * 1000;
      return { ofDayMs, lastsMs: time[3] === undefined ? MINUTE_MS : 1000 };
    }
  }
  const iso = /^\d{4}-\d{2}-\d{2}(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/.exec(text);
  // A date alone would be read as UTC.
  const instant = new Date(iso?.[1] === undefined ? `${text}T00:00` : text.replace(" ", "T"));
  if (iso === null || Number.isNaN(instant.getTime()) || !isDay(text.slice(0, 10))) {
    throw new InvalidOptionError(`Expected ${ALLOWED}, got ${JSON.stringify(text)}.`);
  }
  return { instant, lastsMs: iso[1] === undefined ? DAY_MS : iso[2] === undefined ? MINUTE_MS : 1000 };
}

/** One point in time. @throws InvalidOptionError for a time of day, which is one of every day. */
export function parseInstant(text: string): Date {
  const moment = parseMoment(text);
  if ("instant" in moment) return moment.instant;
  throw new InvalidOptionError(`Expected a date with a time, such as 2026-03-01T03:00, got ${JSON.stringify(text)}.`);
}

/** JavaScript takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** The stretches of time that a filter means, of those that touch `within`. */
export function spansOf(filter: TimeFilter, within: Span): Span[] {
  if ("once" in filter) return [filter.once];
  const { fromMs, toMs } = filter.everyDay;
  const spans: Span[] = [];
  // From the day before: a stretch may go over midnight. By the calendar, because days have 23 and 25 hours too.
  for (let day = -1; ; day++) {
    const at = (ms: number) =>
      new Date(within.from.getFullYear(), within.from.getMonth(), within.from.getDate() + day, 0, 0, 0, ms);
    const span = { from: at(fromMs), to: at(toMs) };
    if (span.from > within.to) return spans;
    if (span.to > within.from) spans.push(span);
  }
}

/** The zone in which this machine shows times, by its IANA name. */
export function timeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function showDay(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function showClock(at: Date): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
