// Workers in processes of their own, and what they came to.
import pg from "pg";
import { expect } from "vitest";
import { START_LOCK } from "./locks.js";
import { type RunningScript, startScript } from "./script.js";
import type { WorkerTask } from "./worker.child.js";

export interface Worked {
  readonly log?: readonly string[];
  readonly ms: number;
  readonly error?: string;
  readonly drain?: { readonly kind: string; readonly message: string };
  readonly __interrupt__?: readonly { readonly value: unknown }[];
}

export interface Worker extends RunningScript {
  readonly result: Promise<Worked>;
  readonly pid: number;
}

export function startWorker(task: WorkerTask): Worker {
  const running = startScript("test/support/worker.child.ts", [JSON.stringify(task)]);
  const { pid } = running.child;
  if (pid === undefined) throw new Error("The worker did not start.");
  const result = running.ended.then((ended) => {
    const last = ended.lines.at(-1);
    if (last === undefined) throw new Error(`The worker ended with ${ended.signal ?? ended.code}: ${ended.stderr}`);
    return last as unknown as Worked;
  });
  // A worker that is killed has no result, and that is no reason to end the tests.
  result.catch(() => undefined);
  return { ...running, result, pid };
}

export function work(task: WorkerTask): Promise<Worked> {
  return startWorker(task).result;
}

/** Workers that start their runs at one moment. */
export async function workTogether(tasks: readonly WorkerTask[]): Promise<Worker[]> {
  const client = new pg.Client({ connectionString: tasks[0]?.url });
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [START_LOCK]);
    const workers = tasks.map((task) => startWorker({ ...task, together: true }));
    const waiting = async () => {
      const { rows } = await client.query<{ n: number }>(
        "select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
        [START_LOCK],
      );
      return rows[0]?.n;
    };
    await expect.poll(waiting, { timeout: 60_000 }).toBe(tasks.length);
    return workers;
  } finally {
    await client.end();
  }
}
