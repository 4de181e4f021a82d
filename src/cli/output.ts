// How results leave a command: JSON lines for scripts, tables for people.
import Table from "cli-table3";
import { InvalidArgumentError } from "commander";
import type { StepRecord } from "../core/ledger.js";
import { formatUsd } from "../core/price.js";

/** One object a line. Money stays exact: nano-dollars as text. */
export function printJson(value: object): void {
  const text = JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? member.toString() : member,
  );
  process.stdout.write(`${text}\n`);
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({ head: [...head], style: { head: [], border: [] }, chars: THIN });
  for (const row of rows) table.push(row.map(visible));
  process.stdout.write(`${table.toString()}\n`);
}

/** Lines under the head alone: readable on a narrow terminal, and in a log. */
const THIN = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

export function printLine(line: string): void {
  process.stdout.write(`${visible(line)}\n`);
}

/** What comes from a thread must not move the cursor, colour the screen or turn the text around of who decides on it. */
function visible(text: string): string {
  return text.replaceAll(/[\p{Cc}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu, (sign) =>
    sign === "\n" || sign === "\t" ? sign : `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** What comes next, where the thread was woken. */
export function goesOn(threadId: string): string {
  return `A worker goes on with thread "${threadId}"; without one run it with null as input.`;
}

/** Cost for people: dollars, or that the price is not known; and whether the tokens behind it are an estimate. */
export function showCost(usage: StepRecord["usage"]): string {
  if (usage === undefined) return "";
  const cost = usage.costNanoUsd === undefined ? "unpriced" : `$${formatUsd(usage.costNanoUsd)}`;
  return usage.estimated ? `${cost} (estimated)` : cost;
}

/** For an option that is a count. */
export function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("Expected a positive integer.");
  return Number(text);
}

export function showTime(at: Date | undefined): string {
  return at === undefined ? "" : at.toISOString().replace("T", " ").slice(0, 19);
}

export function showDuration(from: Date, to: Date | undefined): string {
  if (to === undefined) return "";
  const ms = to.getTime() - from.getTime();
  return ms < 1000
    ? `${ms} ms`
    : ms < 60_000
      ? `${(ms / 1000).toFixed(1)} s`
      : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
