// A thread's trace as people read it: a line for each task, its steps below it, and last the step that cost most.
import { sumCosts } from "../core/price.js";
import type { Span, TracedStep } from "../postgres/trace.js";
import { showSum } from "./costs.js";
import { printLine, printTable, showCost, showDuration } from "./output.js";
import { showClock, showDay, timeZone } from "./times.js";

export interface Trace {
  readonly threadId: string;
  readonly state: string;
  readonly all: readonly TracedStep[];
  /** Undefined for a thread without steps. */
  readonly span: Span | undefined;
  /** The steps that the command's options leave. */
  readonly chosen: readonly TracedStep[];
}

export function printTree(trace: Trace): void {
  printHead(trace);
  const widths = trace.chosen.reduce<number[]>(
    (widest, step) => toCells(step).map((cell, column) => Math.max(cell.length, widest[column] ?? 0)),
    [],
  );
  for (const steps of byTask(trace.chosen).values()) {
    printTask(steps);
    for (const step of steps) {
      const cells = toCells(step).map((cell, column) => cell.padEnd(widths[column] ?? 0));
      printLine(`  ${cells.join("  ")}`.trimEnd());
    }
  }
  printDearest(trace);
}

/** The steps of each task, the tasks in the order in which they began: by superstep, below one graph. */
function byTask(steps: readonly TracedStep[]): Map<string, TracedStep[]> {
  const tasks = new Map<string, TracedStep[]>();
  for (const step of steps) {
    const task = tasks.get(step.checkpointNs);
    if (task === undefined) tasks.set(step.checkpointNs, [step]);
    else task.push(step);
  }
  return tasks;
}

export function printTop(trace: Trace, shown: readonly TracedStep[]): void {
  printHead(trace);
  if (shown.length === 0) return;
  const rows = shown.map((step) => [
    showCost(step.usage),
    shareOf(step, trace.all),
    `#${step.number}`,
    whatOf(step),
    placeOf(step),
    `${showDay(step.startedAt)} ${showClock(step.startedAt)}`,
    showDuration(step.startedAt, step.endedAt),
    step.state,
    triesOf(step),
    tokensOf(step),
  ]);
  printTable(["cost", "share", "#", "step", "node", "started", "took", "state", "", "tokens"], rows);
}

/** What the thread is, and which part of it is shown. */
function printHead({ threadId, state, all, span, chosen }: Trace): void {
  if (span === undefined) {
    printLine(`Thread ${threadId}: ${state}, no step yet.`);
    return;
  }
  const from = `${showDay(span.from)} ${showClock(span.from)}`;
  const to = `${showDay(span.from) === showDay(span.to) ? "" : `${showDay(span.to)} `}${showClock(span.to)}`;
  printLine(`Thread ${threadId}: ${state}, ${from} to ${to} (${timeZone()}), ${count(all)}, ${showCosts(all)}`);
  if (chosen.length === 0) printLine("No step of it is among what was asked for.");
  else if (chosen.length < all.length) printLine(`Shown: ${count(chosen)}, ${showCosts(chosen)}`);
  printLine("");
}

function printTask(steps: readonly TracedStep[]): void {
  const [first] = steps;
  if (first === undefined) return;
  const { superstep, startedAt } = first;
  printLine(`superstep ${superstep}  ${placeOf(first)}  ${showDay(startedAt)}  ${count(steps)}  ${showCosts(steps)}`);
}

function printDearest({ all, chosen }: Trace): void {
  const priced = chosen.filter(({ usage }) => (usage?.costNanoUsd ?? 0n) > 0n);
  const [first, ...rest] = priced;
  if (first === undefined) return;
  const cost = ({ usage }: TracedStep) => usage?.costNanoUsd ?? 0n;
  const dearest = rest.reduce((most, step) => (cost(step) > cost(most) ? step : most), first);
  printLine(
    `\nMost: #${dearest.number} ${whatOf(dearest)} in ${placeOf(dearest)}, superstep ${dearest.superstep}, ` +
      `at ${showClock(dearest.startedAt)}: ${showCost(dearest.usage)}, ${shareOf(dearest, all)} of the thread.`,
  );
}

function toCells(step: TracedStep): string[] {
  return [
    `#${step.number}`,
    `${step.kind === "llm" ? "model" : step.effect}  ${whatOf(step)}`,
    showClock(step.startedAt),
    showDuration(step.startedAt, step.endedAt),
    step.state,
    triesOf(step),
    tokensOf(step),
    showCost(step.usage),
  ];
}

function whatOf({ kind, name, usage }: TracedStep): string {
  if (kind !== "llm") return name;
  return `${usage?.model ?? name}${usage?.tool === undefined ? "" : ` by ${usage.tool}`}`;
}

/** The node, below the nodes whose subgraphs it is in. */
function placeOf({ node, checkpointNs }: TracedStep): string {
  const path = checkpointNs.split("|").map((part) => part.replace(/:.*$/, ""));
  return path.length > 1 ? path.filter((part) => !/^\d+$/.test(part)).join(" > ") : node;
}

function triesOf({ attempt, failures }: TracedStep): string {
  if (attempt <= 1) return "";
  return `try ${attempt}${failures === 0 ? "" : `, ${failures} failed`}`;
}

function tokensOf({ usage }: TracedStep): string {
  if (usage === undefined) return "";
  const { inputTokens, outputTokens, cachedInputTokens } = usage;
  const cached = cachedInputTokens === 0 ? "" : ` (${cachedInputTokens.toLocaleString("en-US")} cached)`;
  return `${inputTokens.toLocaleString("en-US")} in${cached}, ${outputTokens.toLocaleString("en-US")} out`;
}

function shareOf({ usage }: TracedStep, all: readonly TracedStep[]): string {
  const total = sumCosts(all.map((step) => step.usage)).costNanoUsd;
  if (usage?.costNanoUsd === undefined || total === 0n) return "";
  const percent = (usage.costNanoUsd * 100n + total / 2n) / total;
  return percent === 0n ? "under 1 %" : `${percent} %`;
}

function count(steps: readonly TracedStep[]): string {
  return steps.length === 1 ? "1 step" : `${steps.length} steps`;
}

function showCosts(steps: readonly TracedStep[]): string {
  const usages = steps.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  if (usages.length === 0) return "$0";
  const { costNanoUsd, unpriced } = sumCosts(usages);
  const estimated = usages.filter((usage) => usage.estimated).length;
  const known = unpriced < usages.length ? costNanoUsd : undefined;
  return showSum({ costNanoUsd: known, unpriced, estimated, calls: usages.length });
}
