// The demo's worker: runs one thread of the research graph to its end, and may be killed at any moment.
// A thread that has a checkpoint goes on with `null` as its input; what is on record is not done again.
import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { INTERRUPT, isInterrupted } from "@langchain/langgraph";
import { drainReason, openLedger, type StepEvent } from "langgraph-longhaul";
import { unreadTopics } from "./complete.js";
import type { Job, WorkerMessage } from "./demo/messages.js";
import { researchGraph } from "./graph.js";

/** Every parallel task of LangGraph listens to one abort signal; Node's warning at 11 listeners is for leaks. */
setMaxListeners(1_000);

const NANO = 1e9;
/** What to wait when a drain names no time. */
const POLL_MS = 250;

function tell(message: WorkerMessage): void {
  process.send?.(message);
}

function tellStep({ type, key, name, kind, effect, usage }: StepEvent): void {
  const { inputTokens = 0, outputTokens = 0, costNanoUsd = 0n } = usage ?? {};
  tell({
    type: "step",
    what: type,
    key,
    name,
    kind,
    effect,
    inputTokens,
    outputTokens,
    costUsd: Number(costNanoUsd ?? 0n) / NANO,
  });
}

async function run(job: Job): Promise<void> {
  const ledger = openLedger({ onStep: tellStep });
  const graph = researchGraph(ledger, job.budgetUsd);
  const config = { configurable: { thread_id: job.threadId }, recursionLimit: 100 };
  const before = await graph.getState(config);
  const resumed = before.createdAt !== undefined;
  tell({ type: "running", resumed });
  let input = resumed ? null : { question: job.question ?? "", pages: job.pages, urls: [...job.urls] };
  if (resumed && before.next.length === 0) {
    tell({ type: "finished", report: before.values.reportPath });
    return await ledger.close();
  }
  for (;;) {
    try {
      const result = await graph.invoke(input, config);
      const message = isInterrupted(result) ? budgetMessage(result[INTERRUPT]) : undefined;
      if (message !== undefined)
        tell({ type: "out of budget", report: result.reportPath, unread: unreadPages(result), message });
      else if (isInterrupted(result))
        tell({ type: "paused", question: JSON.stringify(result[INTERRUPT].map(({ value }) => value)) });
      else tell({ type: "finished", report: result.reportPath });
      return await ledger.close();
    } catch (error) {
      const reason = drainReason(error);
      // A process that was paused for longer than its lease has lost the thread, and takes it again once it is free.
      if (reason?.kind !== "due" && reason?.kind !== "busy" && reason?.kind !== "lost") throw error;
      const until = reason.dueAt ? new Date(reason.dueAt) : new Date(Date.now() + POLL_MS);
      tell({ type: "waiting", until: until.toISOString(), reason: reason.message });
      await delay(Math.max(POLL_MS, until.getTime() - Date.now()));
      input = null;
    }
  }
}

/** What a budget in the way says; undefined when something else is asked. */
function budgetMessage(interrupts: readonly { value?: unknown }[]): string | undefined {
  const values = interrupts.map(({ value }) => value as { kind?: unknown; message?: string } | undefined);
  return values.find((value) => value?.kind === "BUDGET_EXCEEDED")?.message;
}

function unreadPages(state: Parameters<typeof unreadTopics>[0]): number {
  return (state.topics ?? []).length === 0 ? 0 : unreadTopics(state).reduce((sum, { pages }) => sum + pages.length, 0);
}

/** Often enough to see a peak. */
const MEMORY_MS = 200;
setInterval(
  () => tell({ type: "memory", rssMb: Math.round(process.memoryUsage.rss() / 1024 / 1024) }),
  MEMORY_MS,
).unref();

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
