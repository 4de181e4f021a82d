// `longhaul trace <thread>`: where a thread's time and money went, as a tree of its tasks and their steps.
import { type Command, InvalidArgumentError } from "commander";
import { NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { parseUsd, sumCosts } from "../core/price.js";
import { listThreads } from "../postgres/runs.js";
import { type Span, type TracedStep, traceThread } from "../postgres/trace.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { positiveInteger, printJson } from "./output.js";
import { parseTimes, spansOf, type TimeOptions, withTimeOptions } from "./times.js";
import { printTop, printTree, type Trace } from "./traceTree.js";

interface TraceOptions extends ConnectOptions, TimeOptions {
  readonly top?: number;
  readonly minUsd?: bigint;
}

export function traceCommand(): Command {
  const command = databaseCommand("trace", "show where a thread's time and money went, task by task")
    .argument("<thread>", "thread id")
    .option("--top <n>", "the n dearest steps, in place of the tree", positiveInteger)
    .option("--min-usd <usd>", "only steps that cost at least so much", dollars)
    .addHelpText(
      "after",
      "\nPrompts, inputs and outputs are not shown. A step that was tried again is one step, with what all tries cost.",
    );
  return withTimeOptions(command, "ran").action(async (threadId: string, options: TraceOptions) => {
    const filter = parseTimes(options);
    const trace = await withCurrent(options, async (database) => {
      const [thread] = await listThreads(database, { threadId: checkId("thread", threadId), limit: 1 });
      if (thread === undefined) throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
      return { threadId, state: thread.state, all: await traceThread(database, threadId) };
    });
    const span = spanOf(trace.all);
    const spans = filter === undefined || span === undefined ? undefined : spansOf(filter, span);
    const chosen = choose(trace.all, spans, options);
    const shown = options.top === undefined ? chosen : dearestFirst(chosen).slice(0, options.top);
    if (options.json) for (const step of shown) printJson(toJson(threadId, step));
    else print({ ...trace, span, chosen }, shown, options.top !== undefined);
  });
}

function print(trace: Trace, shown: readonly TracedStep[], top: boolean): void {
  if (top) printTop(trace, shown);
  else printTree(trace);
}

function dollars(text: string): bigint {
  const nanoUsd = parseUsd(text);
  if (nanoUsd === undefined) throw new InvalidArgumentError("Expected dollars, such as 0.5.");
  return nanoUsd;
}

/** From the first step's start to the last one's end. */
function spanOf(steps: readonly TracedStep[]): Span | undefined {
  if (steps.length === 0) return undefined;
  const from = steps.reduce((least, { startedAt }) => Math.min(least, startedAt.getTime()), Number.POSITIVE_INFINITY);
  const to = steps.reduce((most, { activeUntil }) => Math.max(most, activeUntil.getTime()), 0);
  return { from: new Date(from), to: new Date(to) };
}

function choose(
  steps: readonly TracedStep[],
  spans: readonly Span[] | undefined,
  { minUsd }: TraceOptions,
): TracedStep[] {
  return steps.filter(({ startedAt, activeUntil, usage }) => {
    if (minUsd !== undefined && (usage?.costNanoUsd ?? -1n) < minUsd) return false;
    return spans === undefined || spans.some(({ from, to }) => startedAt < to && activeUntil >= from);
  });
}

/** What has no price may be the dearest of all, but nothing says so: it stands after what has one. */
function dearestFirst(steps: readonly TracedStep[]): TracedStep[] {
  const paid = steps.filter(({ usage }) => usage !== undefined);
  const cost = ({ usage }: TracedStep) => usage?.costNanoUsd ?? -1n;
  return paid.sort((a, b) => (cost(a) === cost(b) ? a.number - b.number : cost(a) > cost(b) ? -1 : 1));
}

function toJson(threadId: string, { usage, activeUntil: _, ...step }: TracedStep): object {
  const { checkpointNs, startedAt, endedAt } = step;
  const { costNanoUsd, unpriced } = sumCosts([usage]);
  return {
    threadId,
    ...step,
    taskId: checkpointNs.slice(checkpointNs.lastIndexOf(":") + 1),
    endedAt: endedAt ?? null,
    durationMs: endedAt === undefined ? null : endedAt.getTime() - startedAt.getTime(),
    ...(usage === undefined
      ? {}
      : { ...usage, costNanoUsd: unpriced === 0 ? costNanoUsd : null, unpriced: unpriced > 0 }),
  };
}
