// `longhaul worker` as processes, and threads for them to run.

import { join } from "node:path";
import { inject } from "vitest";
import { openLedger } from "../../src/index.js";
import type { TestDatabase } from "../support/database.js";
import { type RunningScript, startScript } from "../support/script.js";
import { workerGraph } from "../support/workerGraph.js";
import type { Payment, World } from "../support/world.js";

export interface CliWorker extends RunningScript {
  readonly events: readonly Record<string, unknown>[];
  /** The kinds of events of one thread, in order. */
  of(threadId: string): unknown[];
}

export function cliWorkers(db: TestDatabase, world: World) {
  const started: CliWorker[] = [];
  return {
    start: (...argv: string[]): CliWorker => {
      const events: Record<string, unknown>[] = [];
      const running = startScript("src/cli/main.ts", ["worker", "--json", "--url", db.url, ...argv], {
        WORLD_URL: world.url,
      });
      let rest = "";
      running.child.stdout?.on("data", (chunk: Buffer) => {
        const lines = (rest + chunk.toString()).split("\n");
        rest = lines.pop() ?? "";
        events.push(...lines.map((line) => JSON.parse(line) as Record<string, unknown>));
      });
      const of = (threadId: string) =>
        events.filter((event) => event["threadId"] === threadId).map((event) => event["event"]);
      const worker = { ...running, events, of };
      started.push(worker);
      return worker;
    },
    killAll: async () => {
      for (const { child } of started) child.kill("SIGKILL");
      await Promise.all(started.splice(0).map(({ ended }) => ended));
    },
  };
}

/** The compiled module of test/worker/dueGraphs.ts. */
export function graphFile(): string {
  return `${join(inject("scripts"), "test/worker/dueGraphs.js")}:graph`;
}

/** Threads of three writes that nobody has run yet, and that are due. */
export async function dueThreads(db: TestDatabase, world: World, threadIds: readonly string[]): Promise<void> {
  const ledger = openLedger({ url: db.url });
  const graph = workerGraph(ledger, world.url, { shape: "three writes" });
  for (const threadId of threadIds) {
    await graph.updateState({ configurable: { thread_id: threadId } }, { log: [] }, "__start__");
    await db.sql("insert into longhaul.wakes (thread_id, due_at, reason) values ($1, longhaul.ledger_now(), 'test')", [
      threadId,
    ]);
  }
  await ledger.close();
}

export async function stateOf(db: TestDatabase, threadId: string): Promise<string | undefined> {
  const [row] = await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [threadId]);
  return row?.state;
}

/** Holds the answer to the n-th payment of a thread. The payment has happened. */
export function holdPayment(world: World, threadId: string, nth: number) {
  let arrived: (payment: Payment) => void = () => {};
  const happened = new Promise<Payment>((resolve) => {
    arrived = resolve;
  });
  let held = false;
  world.beforeAnswer = (payment) => {
    if (held || payment.thread !== threadId || world.paymentsOf(threadId).length !== nth) return;
    held = true;
    arrived(payment);
    // The process that waits for it is killed.
    return new Promise(() => {});
  };
  return happened;
}
