// One round: new threads, some faults, then on to the end, and what the world and the ledger say.
import { booksOf, recordedOf, threadEnd } from "../crash/orderBooks.js";
import type { OrderTask } from "../crash/orderChild.js";
import { AMOUNTS } from "../crash/orderGraph.js";
import type { TestDatabase } from "../support/database.js";
import type { TcpProxy } from "../support/tcpProxy.js";
import type { World } from "../support/world.js";
import { chooseFault, type Fault, runChild, suffer } from "./faults.js";

const THREADS = 3;
const MOST_FAULTS = 3;
/** A run that was refused because another one holds its thread, or that waits for a settle time, is run again. */
const MOST_RUNS = 20;

export interface Stage {
  readonly script: string;
  readonly url: string;
  readonly proxy: TcpProxy;
  readonly world: World;
  readonly sql: TestDatabase["sql"];
}

export interface Round {
  readonly round: number;
  readonly durability: OrderTask["durability"];
  readonly faults: readonly Fault[];
  /** Processes that were killed. */
  readonly kills: number;
  readonly effectsExpected: number;
  readonly effectsSeen: number;
  /** Effects, reads and model calls that happened twice although the first was recorded. */
  readonly duplicates: number;
  readonly lost: number;
  readonly unsettled: number;
  /** Threads that did not come to their end. */
  readonly unfinished: number;
}

export async function runRound(stage: Stage, round: number, random: () => number): Promise<Round> {
  const { script, url, world, proxy } = stage;
  const durability = random() < 0.5 ? "sync" : "async";
  const threads = Array.from({ length: THREADS }, (_, i) => `round ${round} thread ${i + 1}`);
  const task: OrderTask = { url, worldUrl: world.url, durability, threads };
  const faults = Array.from({ length: 1 + Math.floor(random() * MOST_FAULTS) }, () => chooseFault(random));
  const recorded = new Map<string, number>();
  let kills = 0;
  for (const fault of faults) {
    kills += await suffer(script, task, fault, proxy);
    proxy.count();
    for (const thread of threads) {
      for (const [what, count] of Object.entries(await recordedOf(stage, world, thread))) {
        const request = `${thread} ${what}`;
        if (!recorded.has(request)) recorded.set(request, count);
      }
    }
  }
  await finish(script, task);
  return { round, durability, faults, kills, ...(await countUp(stage, threads, recorded)) };
}

async function finish(script: string, task: OrderTask): Promise<void> {
  let left = task.threads;
  for (let run = 0; run < MOST_RUNS && left.length > 0; run++) {
    const lines = (await runChild(script, { ...task, threads: left })).stdout.trim().split("\n");
    const ended = lines.map((line) => JSON.parse(line) as { readonly thread: string; readonly error?: string });
    left = ended.filter(({ error }) => error !== undefined).map(({ thread }) => thread);
  }
}

async function countUp(stage: Stage, threads: readonly string[], recorded: ReadonlyMap<string, number>) {
  const effectsExpected = threads.length * AMOUNTS.length;
  const sum = { effectsExpected, effectsSeen: 0, duplicates: 0, lost: 0, unsettled: 0, unfinished: 0 };
  for (const thread of threads) {
    const end = await threadEnd(stage, stage.world, thread);
    sum.effectsSeen += end.payments.length;
    sum.duplicates += end.duplicates;
    sum.lost += end.lost;
    sum.unsettled += end.unsettled.length;
    sum.unfinished += end.state === "done" ? 0 : 1;
    const whats = Object.keys(await recordedOf(stage, stage.world, thread));
    for (const [what, count] of Object.entries(booksOf(stage.world, thread, whats))) {
      sum.duplicates += count - (recorded.get(`${thread} ${what}`) ?? count);
    }
  }
  return sum;
}
