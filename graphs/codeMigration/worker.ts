// The demo's worker: runs one thread of the code-migration graph to its end, and may be killed at any moment. What only a
// person can decide it tells its parent, and waits for the word to go on.
import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { INTERRUPT, isInterrupted } from "@langchain/langgraph";
import { drainReason, openLedger, type StepEvent } from "langgraph-longhaul";
import type { Job, Tests, WorkerMessage } from "./demo/messages.js";
import { migrationGraph } from "./graph.js";
import type { MigrationState } from "./state.js";

/** Every parallel task of LangGraph listens to one abort signal; Node's warning at 11 listeners is for leaks. */
setMaxListeners(1_000);

const NANO = 1e9;
/** What to wait when a drain names no time. */
const POLL_MS = 250;
/** Supersteps: a batch takes two, and a package has at most a few hundred files. */
const RECURSION_LIMIT = 500;

type State = Partial<MigrationState>;

function tell(message: WorkerMessage): void {
  process.send?.(message);
}

function tellStep({ type, key, name, kind, effect, usage }: StepEvent): void {
  tell({ type: "step", what: type, key, name, kind, effect, costUsd: Number(usage?.costNanoUsd ?? 0n) / NANO });
}

async function run(job: Job): Promise<void> {
  const ledger = openLedger({ onStep: tellStep });
  try {
    const state = await runToEnd(job, migrationGraph(ledger, job.budgetUsd));
    if (state !== undefined) tellEnd(state);
  } finally {
    await ledger.close();
  }
}

/** The state at the thread's end; undefined where it waits for something that nobody here can give. */
async function runToEnd(job: Job, graph: ReturnType<typeof migrationGraph>): Promise<State | undefined> {
  const config = { configurable: { thread_id: job.threadId }, recursionLimit: RECURSION_LIMIT };
  const before = await graph.getState(config);
  const resumed = before.createdAt !== undefined;
  tell({ type: "running", resumed });
  if (resumed && before.next.length === 0) return before.values;
  let input = resumed ? null : { package: job.package ?? "", repository: job.repository ?? "" };
  for (;;) {
    try {
      const result = await graph.invoke(input, config);
      if (!isInterrupted(result)) return result;
      const values = result[INTERRUPT].map(({ value }) => value as { kind?: string; message?: string } | undefined);
      if (!values.every((value) => value?.kind === "APPROVAL")) {
        const [first] = values;
        tell({ type: "paused", question: first?.message ?? JSON.stringify(values) });
        return undefined;
      }
      tell({ type: "asking" });
      await wordToGoOn();
    } catch (error) {
      await waitForTime(error);
    }
    input = null;
  }
}

function wordToGoOn(): Promise<void> {
  return new Promise((resolve) => {
    process.once("message", () => resolve());
  });
}

/** @throws what does not pass with time. */
async function waitForTime(error: unknown): Promise<void> {
  const reason = drainReason(error);
  if (reason?.kind !== "due" && reason?.kind !== "busy") throw error;
  const until = reason.dueAt ? new Date(reason.dueAt) : new Date(Date.now() + POLL_MS);
  tell({ type: "waiting", until: until.toISOString(), reason: reason.message });
  await delay(Math.max(POLL_MS, until.getTime() - Date.now()));
}

function tellEnd({ outcome, edits = [], refusals = [], ...state }: State): void {
  if (outcome === undefined) throw new Error("The thread has ended without an outcome.");
  tell({
    type: "finished",
    outcome,
    subject: state.subject ?? null,
    base: state.base ?? null,
    tree: state.tree ?? null,
    files: new Set(edits.map(({ path }) => path)).size,
    refusals,
    repairs: state.repairs ?? 0,
    testsBefore: counts(state.testsBefore),
    testsAfter: counts(state.testsAfter),
    patch: state.patch ?? null,
    pullRequest: state.pullRequest || null,
  });
}

function counts(report: Tests | undefined): Tests | null {
  return report === undefined ? null : { passed: report.passed, failed: report.failed };
}

// Nobody would hear of a run whose parent is gone.
process.on("disconnect", () => process.exit(1));
process.once("message", (job: Job) => {
  run(job).then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
tell({ type: "ready" });
