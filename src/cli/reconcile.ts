// `longhaul reconcile`: writes whose outcome is not known, and the word of a person on them.
import { type Command, Command as Group } from "commander";
import { InvalidOptionError } from "../core/errors.js";
import type { StepRecord } from "../core/ledger.js";
import { questionOf } from "../core/question.js";
import { type SettleRequest, settle } from "../operate/settle.js";
import { type DuplicateEffect, duplicateEffects } from "../postgres/lateReceipts.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import { type ConnectOptions, databaseCommand, systemUser, withExisting, withLedger } from "./connect.js";
import { goesOn, printJson, printLine, printTable, showTime } from "./output.js";
import { runCommand } from "./reconcileRun.js";
import { typedStep } from "./typedId.js";

export function reconcileCommand(): Command {
  return new Group("reconcile")
    .description("writes whose outcome is not known")
    .addCommand(listCommand())
    .addCommand(runCommand())
    .addCommand(settleCommand());
}

function listCommand(): Command {
  return databaseCommand("list", "list what a lookup or a person must settle, the oldest first").action(
    async (options: ConnectOptions) => {
      const { steps, duplicates } = await withExisting(options, async (database) => ({
        steps: await unsettledSteps(database, 500),
        duplicates: await duplicateEffects(database, 500),
      }));
      if (options.json) {
        for (const step of steps) printJson(toJson(step));
        for (const duplicate of duplicates) printJson({ ...duplicate, question: "duplicate" });
      } else if (steps.length + duplicates.length === 0) printLine("Nothing is in doubt.");
      else {
        const head = ["thread", "node/step", "in doubt since", '"did not happen" counts from', "why", "key"];
        printTable(head, [...steps.map(toRow), ...duplicates.map(duplicateRow)]);
        printLine(
          "\nSettle one: longhaul reconcile settle <key> --happened '<json>' | --did-not-happen | --write-off --reason …",
        );
      }
    },
  );
}

function toJson(step: StepRecord): object {
  const { key, position, name, state, attempt, inputHash, drift, failure, doubtSince, leaseUntil, settledFrom } = step;
  const { threadId, node } = position;
  const since = doubtSince ?? leaseUntil;
  return {
    key,
    threadId,
    node,
    name,
    state,
    attempt,
    question: questionOf(step),
    inputHash,
    newInputHash: drift?.inputHash,
    since,
    didNotHappenCountsFrom: settledFrom,
    // Without the message: it is the provider's, and may say anything.
    failure: failure === undefined ? undefined : { name: failure.name, code: failure.code, status: failure.status },
  };
}

function toRow(step: StepRecord): string[] {
  const why = {
    sibling: "another branch did this: --reuse or --run-again",
    drift: "another input came: --keep or --fail",
    output: "it happened, its output could not be stored",
    several: "its lookup found it more than once",
    outcome: failureOf(step),
  };
  return [
    step.position.threadId,
    `${step.position.node}/${step.name}`,
    showTime(step.doubtSince ?? step.leaseUntil),
    showTime(step.settledFrom),
    why[questionOf(step)].slice(0, 50),
    step.key,
  ];
}

/** What kind of failure left it open. Its message is the provider's, and may say anything: `longhaul show` has it. */
function failureOf({ failure }: StepRecord): string {
  if (failure === undefined) return "no receipt";
  return failure.status === undefined ? (failure.code ?? failure.name) : `HTTP ${failure.status}`;
}

function duplicateRow({ threadId, node, name, at, key }: DuplicateEffect): string[] {
  return [threadId, `${node}/${name}`, showTime(at), "", "it happened TWICE: deal with it, then --acknowledge", key];
}

interface SettleOptions extends ConnectOptions {
  readonly happened?: string;
  readonly didNotHappen?: boolean;
  readonly writeOff?: boolean;
  readonly keep?: boolean;
  readonly fail?: boolean;
  readonly reuse?: boolean;
  readonly runAgain?: boolean;
  readonly acknowledge?: boolean;
  readonly by: string;
  readonly reason?: string;
}

function settleCommand(): Command {
  return databaseCommand("settle", "record what you found out about a write; its thread can then go on")
    .argument("<key>", "the step's key, from `longhaul reconcile list`, or its first digits")
    .option("--happened <json>", "it happened, and this is its receipt (what the step's function would have returned)")
    .option("--did-not-happen", "it did not happen; counts only after the settle time")
    .option("--write-off", "give it up: the step fails for good (needs --reason)")
    .option("--keep", "another input came: keep what is recorded")
    .option("--fail", "another input came: fail the step's caller")
    .option("--reuse", "another branch has done this: use its result")
    .option("--run-again", "another branch has done this: do it again")
    .option("--acknowledge", "it happened twice: known, and dealt with")
    .option("--by <who>", "who says so", systemUser())
    .option("--reason <text>", "why; goes to the step's history")
    .action(async (typed: string, options: SettleOptions) => {
      const request = toRequest(options);
      const { key, answer } = await withLedger(options, async (ledger, database) => {
        const key = await typedStep(database, typed);
        return { key, answer: await settle(ledger, { ...request, idempotencyKey: key }) };
      });
      if (options.json) printJson({ key, ...answer });
      else printLine(explain(key, answer));
      if (answer.result !== "settled") process.exitCode = 3;
    });
}

function toRequest(options: SettleOptions): Omit<SettleRequest, "idempotencyKey"> {
  const given = {
    happened: options.happened !== undefined,
    "did-not-happen": options.didNotHappen === true,
    "write-off": options.writeOff === true,
    keep: options.keep === true,
    fail: options.fail === true,
    reuse: options.reuse === true,
    "run-again": options.runAgain === true,
    acknowledge: options.acknowledge === true,
  };
  const outcomes = (Object.keys(given) as (keyof typeof given)[]).filter((name) => given[name]);
  const [outcome] = outcomes;
  if (outcome === undefined || outcomes.length > 1) {
    throw new InvalidOptionError(
      "Give one of --happened '<json>', --did-not-happen, --write-off, --keep, --fail, --reuse, --run-again, --acknowledge.",
    );
  }
  const reason = options.reason === undefined ? {} : { reason: options.reason };
  const receipt = outcome === "happened" ? { receipt: parseReceipt(options.happened ?? "") } : {};
  return { by: options.by, outcome, ...reason, ...receipt };
}

function parseReceipt(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidOptionError(
      'Expected --happened to be JSON, such as \'{"id":"po_1"}\' or \'"po_1"\' with its quotes.',
    );
  }
}

function explain(key: string, answer: Awaited<ReturnType<typeof settle>>): string {
  switch (answer.result) {
    case "settled":
      return `Settled. ${goesOn(answer.threadId)}`;
    case "not-yet":
      return `Not yet: it is being run, or a request may still be on its way. Again from ${answer.notBefore.toISOString()}.`;
    case "already-settled":
      return `Step ${key} is ${answer.state}; there is nothing to settle.`;
  }
}
