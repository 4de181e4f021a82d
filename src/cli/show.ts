// `longhaul show <thread>`: every step of a thread, in order, with its state, attempt, duration, cost and receipt.
import type { Command } from "commander";
import { BodyCodecError, NotFoundError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { checkId } from "../core/key.js";
import { formatUsd, sumCosts } from "../core/price.js";
import { type ThreadEvent, threadEvents } from "../postgres/cancels.js";
import { type PinEvent, pinEvents } from "../postgres/pinReads.js";
import { listThreads } from "../postgres/runs.js";
import { historyOf, type StepTrace, stepsOfThread } from "../postgres/stepRows.js";
import { type ConnectOptions, databaseCommand, withCurrent } from "./connect.js";
import { printJson, printLine, printTable, showCost, showDuration, showTime } from "./output.js";

interface ShowOptions extends ConnectOptions {
  readonly history?: boolean;
}

export function showCommand(): Command {
  return databaseCommand("show", "show the steps of a thread, in order")
    .argument("<thread>", "thread id")
    .option(
      "--history",
      "with --json: what people did to the thread and which versions it moved to, then every change of every step, by whom and why",
    )
    .addHelpText("after", "\nReceipts are cut and redacted; inputs and outputs are not shown.")
    .action((threadId: string, options: ShowOptions) =>
      withCurrent(options, async (database) => {
        const [thread] = await listThreads(database, { threadId: checkId("thread", threadId), limit: 1 });
        if (thread === undefined)
          throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
        const steps = await stepsOfThread(database, threadId);
        if (!options.json) {
          await printSteps(thread.state, threadId, steps);
          printEvents(await threadEvents(database, threadId));
          return printPinEvents(await pinEvents(database, threadId));
        }
        if (options.history) {
          for (const { kind, ...event } of await threadEvents(database, threadId))
            printJson({ threadId, event: kind, ...event });
          for (const event of await pinEvents(database, threadId)) printJson({ threadId, event: "version", ...event });
        }
        for (const step of steps) {
          const history = options.history ? { history: await historyOf(database, step.record.key) } : {};
          printJson({ ...(await toJson(step)), ...history });
        }
      }),
    );
}

async function toJson({ record, startedAt, endedAt }: StepTrace): Promise<object> {
  const {
    key,
    state,
    kind,
    effect,
    name,
    version,
    position,
    attempt,
    failures,
    inputHash,
    failure,
    usage,
    doubtSince,
    dueAt,
  } = record;
  const { node, superstep, checkpointNs } = position;
  const durationMs = endedAt === undefined ? null : endedAt.getTime() - startedAt.getTime();
  const receipt = await receiptOf(record);
  return {
    key,
    node,
    superstep,
    checkpointNs,
    name,
    version,
    kind,
    effect,
    state,
    attempt,
    failures,
    inputHash,
    startedAt,
    endedAt,
    durationMs,
    receipt,
    usage,
    failure,
    doubtSince,
    dueAt,
  };
}

async function printSteps(state: string, threadId: string, steps: readonly StepTrace[]): Promise<void> {
  const receipts = await Promise.all(steps.map(({ record }) => receiptOf(record)));
  printTable(
    ["#", "node", "step", "effect", "state", "try", "took", "cost", "receipt"],
    steps.map(({ record, startedAt, endedAt }, i) => [
      String(i + 1),
      record.position.node,
      record.kind === "llm" ? (record.usage?.model ?? record.name) : record.name,
      record.kind === "llm" ? "model" : record.effect,
      record.state === "RUNNING" && state === "cancel requested" ? "RUNNING, cancel requested" : record.state,
      String(record.attempt),
      showDuration(startedAt, endedAt),
      showCost(record.usage),
      (receipts[i] ?? record.failure?.message ?? "").slice(0, 48),
    ]),
  );
  const { costNanoUsd, unpriced } = sumCosts(steps.map((step) => step.record.usage));
  const unknown = unpriced === 0 ? "" : `, and ${unpriced} calls of unknown price`;
  printLine(`\nThread ${threadId}: ${state}, ${steps.length} steps, $${formatUsd(costNanoUsd)}${unknown}.`);
}

/** What people did to the thread as a whole. */
function printEvents(events: readonly ThreadEvent[]): void {
  for (const { kind, by, reason, at } of events)
    printLine(redact(`${showTime(at)}  ${kind} by ${by}${reason === undefined ? "" : `: ${reason}`}`));
}

/** How what the thread is held to has changed. */
function printPinEvents(events: readonly PinEvent[]): void {
  for (const { name, from, to, verdict, detail, by, at } of events)
    printLine(redact(`${showTime(at)}  ${name} ${from} -> ${to}: ${verdict} by ${by} (${detail})`));
}

/** What a write came back with, short enough for a table. Reads and model answers are content, not receipts. */
async function receiptOf({ effect, output }: StepTrace["record"]): Promise<string | undefined> {
  if (effect !== "write" || output === undefined) return undefined;
  if (output.artifact !== undefined) return `(kept as artifact ${output.artifact})`;
  try {
    return redact(await output.read()).slice(0, 200);
  } catch (error) {
    if (error instanceof BodyCodecError) return "(stored through a bodyCodec)";
    throw error;
  }
}
