// kill -9 before and after every single statement of a graph that writes much, with parallel tasks, a subgraph and a
// loop, and once more at every statement of the run that settles what the first crash left in doubt.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bundle, bundle } from "../support/bundle.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import type { KillPoint } from "../support/pools.js";
import { type Ended, inParallel, startNode } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import { type Books, booksOf, recordedOf, type ThreadEnd, threadEnd } from "./orderBooks.js";
import type { Durability, OrderTask } from "./orderChild.js";
import { AMOUNTS } from "./orderGraph.js";

/** Children at once, and threads that one child resumes. */
const AT_ONCE = 2;
const BATCH = 8;
/** After the last verdict on a step in doubt come its reading, its claim, its receipt and what waits for them. */
const AFTER_VERDICT = 5;

interface Crash {
  readonly thread: string;
  readonly kills: readonly KillPoint[];
}

interface Finished {
  readonly thread: string;
  readonly statements: readonly string[];
  readonly state?: unknown;
  readonly error?: string;
}

let script: Bundle;
let db: TestDatabase;
let world: World;
beforeAll(async () => {
  [script, db, world] = await Promise.all([bundle("test/crash/orderChild.ts"), testDatabase(), startWorld()]);
});
afterAll(async () => {
  await world.close();
  await script.remove();
});

function startChild(durability: Durability, threads: readonly string[], kill?: KillPoint): Promise<Ended> {
  const task: OrderTask = { url: db.url, worldUrl: world.url, durability, threads, ...(kill ? { kill } : {}) };
  return startNode([script.file, JSON.stringify(task)]).ended;
}

async function finish(durability: Durability, threads: readonly string[]): Promise<Finished[]> {
  const { code, stderr, lines } = await startChild(durability, threads);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return lines as unknown as Finished[];
}

/** A run that nothing happens to: what it sends, and where it ends. */
async function undisturbed(durability: Durability): Promise<Finished & { end: ThreadEnd }> {
  const thread = `${durability}-undisturbed`;
  const [finished] = await finish(durability, [thread]);
  if (finished === undefined) throw new Error("The child printed nothing.");
  const end = await threadEnd(db, world, thread);
  expect(end).toMatchObject({ state: "done", duplicates: 0, lost: 0, unsettled: [] });
  return { ...finished, end };
}

/** The statements that a thread's run sends: not those that look whether the schema is there. */
function countedOf({ statements }: Finished): string[] {
  const counted = statements.filter((name) => name.startsWith("lh_"));
  const first = statements.findIndex((name) => name.startsWith("lh_"));
  expect(statements.slice(first)).toEqual(counted);
  return counted;
}

/** As if whoever died had just renewed for an hour: whoever comes next must see that it is dead. */
async function lengthenLiveLeases(thread: string): Promise<void> {
  for (const table of ["threads", "steps"]) {
    await db.sql(
      `update longhaul.${table} set lease_until = now() + interval '1 hour' where thread_id = $1 and lease_until > now()`,
      [thread],
    );
  }
}

/** Kills the children of one crash, one after the other; false when the run ended before its last point was reached. */
async function crash(durability: Durability, { thread, kills }: Crash): Promise<boolean> {
  for (const kill of kills) {
    const { signal, code, stderr, lines } = await startChild(durability, [thread], kill);
    expect({ thread, stderr }).toEqual({ thread, stderr: "" });
    if (signal === "SIGKILL") {
      await lengthenLiveLeases(thread);
      continue;
    }
    expect({ thread, code, end: lines }).toMatchObject({ code: 0, end: [{ thread }] });
    const sent = countedOf(lines[0] as unknown as Finished);
    expect({ thread, sent: sent.length }).toEqual({ thread, sent: Math.min(sent.length, kill.nth - 1) });
    return false;
  }
  return true;
}

/** Crashes, then goes on with every thread in new processes, and holds the end against that of the undisturbed run. */
async function crashAndResume(durability: Durability, crashes: readonly Crash[], like: Finished & { end: ThreadEnd }) {
  const died = await inParallel(crashes, AT_ONCE, (one) => crash(durability, one));
  const before = new Map<string, Books>();
  for (const { thread } of crashes) before.set(thread, await recordedOf(db, world, thread));
  const batches: string[][] = [];
  for (let i = 0; i < crashes.length; i += BATCH) batches.push(crashes.slice(i, i + BATCH).map(({ thread }) => thread));
  const finished = (await inParallel(batches, AT_ONCE, (batch) => finish(durability, batch))).flat();
  const sum = { tried: died.filter(Boolean).length, duplicates: 0, lost: 0 };
  for (const { thread, state, error } of finished) {
    expect({ thread, state, error }).toEqual({ thread, state: like.state, error: undefined });
    const end = await threadEnd(db, world, thread);
    sum.duplicates += end.duplicates;
    sum.lost += end.lost;
    expect({ thread, ...end }).toEqual({ thread, ...like.end });
    const recorded = before.get(thread) ?? {};
    expect({ thread, asked: booksOf(world, thread, Object.keys(recorded)) }).toEqual({ thread, asked: recorded });
  }
  expect(finished.map(({ thread }) => thread).sort()).toEqual(crashes.map(({ thread }) => thread).sort());
  return { ...sum, survivors: died.filter((dead) => !dead).length };
}

const MOMENTS = ["before", "after"] as const;

describe.each(["sync", "async"] as const)("kill -9 at every statement of a large graph, %s", (durability) => {
  it("loses nothing, does nothing twice, and ends as if nothing had happened", async () => {
    const like = await undisturbed(durability);
    const names = countedOf(like);
    expect(like.end.payments).toEqual(AMOUNTS);
    const crashes = names.flatMap((name, i) =>
      MOMENTS.map((at): Crash => {
        return { thread: `${durability}-${i + 1}-${at}-${name}`, kills: [{ statement: "*", nth: i + 1, at }] };
      }),
    );
    const sum = await crashAndResume(durability, crashes, like);
    process.stdout.write(
      `${durability}: crash points tried: ${sum.tried}, duplicates ${sum.duplicates}, lost ${sum.lost}\n`,
    );
    // A run may get by with fewer statements than the one that was counted: on a slow machine that one renews, and looks
    // again for checkpoints that are still on their way.
    expect(sum.survivors).toBeLessThanOrEqual(crashes.length / 10);
  }, 1_500_000);
});

describe("A second kill -9 at every statement that settles what the first one left in doubt", () => {
  // The first receipt is the model call's, the others are the payments': one of three in parallel, one in the subgraph.
  it.each([
    ["parallel", "before its effect", { statement: "lh_begin_write", nth: 2, at: "after" }],
    ["parallel", "after its effect", { statement: "lh_succeed", nth: 3, at: "before" }],
    ["subgraph", "before its effect", { statement: "lh_begin_write", nth: 4, at: "after" }],
    ["subgraph", "after its effect", { statement: "lh_succeed", nth: 5, at: "before" }],
  ] as const)(
    "of a payment (%s), killed %s",
    async (where, when, first) => {
      const like = await undisturbed("sync");
      const name = `${where}-${when.replaceAll(" ", "-")}`;
      const settling = `${name}-settling`;
      expect(await crash("sync", { thread: settling, kills: [first] })).toBe(true);
      const [resumed] = await finish("sync", [settling]);
      if (resumed === undefined) throw new Error("The child printed nothing.");
      const names = countedOf(resumed);
      const until = names.lastIndexOf("lh_settle") + AFTER_VERDICT;
      expect(until).toBeGreaterThan(AFTER_VERDICT);
      const crashes = names.slice(0, until).flatMap((_, i) =>
        MOMENTS.map((at): Crash => {
          return { thread: `${name}-${i + 1}-${at}`, kills: [first, { statement: "*", nth: i + 1, at }] };
        }),
      );
      const sum = await crashAndResume("sync", crashes, like);
      process.stdout.write(
        `${where}, ${when}: second crash points tried: ${sum.tried}, duplicates ${sum.duplicates}, lost ${sum.lost}\n`,
      );
    },
    900_000,
  );
});
