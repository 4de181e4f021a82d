// How results are shown: a table for people, or one JSON object a line.
import Table from "cli-table3";
import type { Result } from "./result.js";
import type { Server } from "./server.js";

export function jsonLine(result: Result, server: Server): string {
  const { version, compression } = server;
  return JSON.stringify({ ...result, server: version, compression }, (_key, value: unknown) =>
    typeof value === "number" ? round(value) : value,
  );
}

export function table(results: readonly Result[]): string {
  const shown = new Table({
    head: [
      "",
      "work",
      "ours",
      "reference",
      "ratio (quartiles, slices)",
      "target",
      "",
      "write tx",
      "WAL B (ref.)",
      "twice (ref.)",
    ],
    style: { head: [], border: [] },
    colAligns: ["left", "left", "right", "right", "right", "right", "left", "right", "right", "right"],
  });
  for (const result of results) {
    const { ratioQuartiles, unit, targetOf, target } = result;
    shown.push([
      result.id,
      result.what,
      `${digits(result.ours)} ${unit}`,
      `${digits(result.reference)} ${unit}`,
      `${result.ratio.toFixed(2)} (${ratioQuartiles.map((ratio) => ratio.toFixed(2)).join(" to ")}, ${result.slices})`,
      targetOf === "ratio" ? `<= ${target}` : `+${digits(result.ours - result.reference)} < ${target} ${unit}`,
      result.pass ? "met" : "missed",
      withTarget(result.writeTxPerStep, result.writeTxTarget, 2),
      `${withTarget(result.walBytesPerStep, result.walBytesTarget, 0)}${reference(result)}`,
      result.repeatedEffects === undefined ? "" : `${result.repeatedEffects} (${result.referenceRepeatedEffects})`,
    ]);
  }
  return shown.toString();
}

function withTarget(value: number | undefined, target: number | undefined, fraction: number): string {
  if (value === undefined) return "";
  return `${value.toFixed(fraction)}${target === undefined ? "" : ` <= ${target}`}`;
}

function reference({ referenceWalBytesPerStep }: Result): string {
  return referenceWalBytesPerStep === undefined ? "" : ` (${referenceWalBytesPerStep.toFixed(0)})`;
}

function digits(value: number): string {
  return value.toFixed(value < 10 ? 2 : 0);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
