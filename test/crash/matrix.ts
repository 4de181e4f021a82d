// Kills one write step at every named point, and lets new processes settle what is left.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import type { KillPoint } from "../support/pools.js";
import { type Ended, inParallel, longhaul, runScript, startScript } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import type { ChildTask } from "./child.js";
import { type Declaration, SETTLE_MS } from "./paymentGraph.js";

const CHILD = "test/crash/child.ts";

export type CrashPoint = keyof typeof POINTS;

interface Left {
  /** What the ledger says of the payment after the crash; undefined for nothing. */
  readonly state: string | undefined;
  readonly payments: number;
  /** Pending writes of the node that was killed. */
  readonly pending: boolean;
}

// The model call has the first receipt of the run, the payment the second. The first two checkpoints are the
// input's, the third is that of the node.
export const POINTS = {
  "before the intent": {
    kill: { statement: "lh_begin_write", nth: 1, at: "before" },
    left: { state: undefined, payments: 0, pending: false },
  },
  "after the intent, before the effect": {
    kill: { statement: "lh_begin_write", nth: 1, at: "after" },
    left: { state: "RUNNING", payments: 0, pending: false },
  },
  "after the request was sent, before its answer": {
    kill: "by the world",
    left: { state: "RUNNING", payments: 1, pending: false },
  },
  "after the effect, before the receipt": {
    kill: { statement: "lh_succeed", nth: 2, at: "before" },
    left: { state: "RUNNING", payments: 1, pending: false },
  },
  "after the receipt": {
    kill: { statement: "lh_succeed", nth: 2, at: "after" },
    left: { state: "SUCCEEDED", payments: 1, pending: false },
  },
  "between putWrites and put": {
    kill: { statement: "lh_run_put", nth: 3, at: "before" },
    left: { state: "SUCCEEDED", payments: 1, pending: true },
  },
} as const satisfies Record<string, { kill: KillPoint | "by the world"; left: Left }>;

export const NAMES = Object.keys(POINTS) as CrashPoint[];

/** A thread for each point, named so that it can stand in an address. */
export function threadOf(point: CrashPoint): string {
  return point.replaceAll(/[ ,]+/g, "-");
}

/** Runs the graph once for each crash point and kills it there. */
export async function crashEverywhere(
  url: string,
  world: World,
  declaration: Declaration,
): Promise<Map<CrashPoint, Ended>> {
  const ends = await inParallel(NAMES, 3, async (point) => {
    const thread = threadOf(point);
    const { kill } = POINTS[point];
    const task: ChildTask = { url, worldUrl: world.url, threads: [{ thread, declaration }] };
    if (kill !== "by the world") return runScript(CHILD, [JSON.stringify({ ...task, kill })]);
    const { child, ended } = startScript(CHILD, [JSON.stringify(task)]);
    const before = world.beforeAnswer;
    world.beforeAnswer = async (payment) => {
      if (payment.thread !== thread) return before(payment);
      child.kill("SIGKILL");
      await ended;
    };
    return ended;
  });
  world.beforeAnswer = () => {};
  return new Map(NAMES.map((point, i) => [point, ends[i] as Ended]));
}

export interface Resumed {
  readonly thread: string;
  readonly ms: number;
  readonly importsMs: number;
  readonly stored: boolean;
  readonly log: readonly string[];
  readonly error?: string;
  readonly __interrupt__?: readonly { readonly value: { readonly kind: string; readonly idempotencyKey: string } }[];
}

/** One new process that goes on with the threads, one after the other. */
export async function resume(
  url: string,
  world: World,
  declaration: Declaration,
  threads: readonly string[],
): Promise<Resumed[]> {
  const task: ChildTask = { url, worldUrl: world.url, threads: threads.map((thread) => ({ thread, declaration })) };
  const { code, lines, stderr } = await runScript(CHILD, [JSON.stringify(task)]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return lines as unknown as Resumed[];
}

export interface StepRow {
  readonly name: string;
  readonly state: string;
  readonly attempt: number;
  readonly key: string;
  readonly doubt: boolean;
}

export function stepsOf(db: TestDatabase, thread: string): Promise<StepRow[]> {
  return db.sql<StepRow>(
    "select name, state, attempt, encode(key, 'hex') as key, doubt_since is not null as doubt from longhaul.steps where thread_id = $1 order by seq",
    [thread],
  );
}

async function leftBehind(db: TestDatabase, world: World, thread: string): Promise<Left> {
  const pay = (await stepsOf(db, thread)).find((step) => step.name === "pay");
  const [row] = await db.sql<{ n: number }>(
    `select count(*)::int as n from longhaul.checkpoint_writes w where w.thread_id = $1 and w.channel = 'log'
     and not exists (select 1 from longhaul.checkpoints c where c.thread_id = $1 and c.parent_checkpoint_id = w.checkpoint_id)`,
    [thread],
  );
  return { state: pay?.state, payments: world.paymentsOf(thread).length, pending: (row?.n ?? 0) > 0 };
}

/** How often a resumed thread has paid, and the state in which it was left. */
async function expectSettled(db: TestDatabase, world: World, thread: string): Promise<void> {
  expect(world.paymentsOf(thread)).toHaveLength(1);
  const steps = await stepsOf(db, thread);
  expect(steps.map(({ name, state, doubt }) => ({ name, state, doubt }))).toEqual(
    ["page", "model", "pay"].map((name) => ({ name, state: "SUCCEEDED", doubt: false })),
  );
  expect(world.paymentsOf(thread)[0]?.key).toBe(steps[2]?.key);
  // What was recorded before the crash is asked for once in all its runs.
  expect([world.count("page", thread), world.count("model", thread)]).toEqual([1, 1]);
  expect(await db.sql("select state, error from longhaul.threads where thread_id = $1", [thread])).toEqual([
    { state: "done", error: null },
  ]);
}

/** As if whoever died had just renewed for an hour. */
export async function lengthenLeases(db: Pick<TestDatabase, "sql">): Promise<void> {
  for (const table of ["threads", "steps"]) {
    await db.sql(
      `update longhaul.${table} set lease_until = now() + interval '1 hour' where lease_until > '-infinity'`,
    );
  }
}

/** Points at which the outcome is not known afterwards: a person is asked when there is no lookup. */
function inDoubt(point: CrashPoint): boolean {
  return POINTS[point].left.state === "RUNNING";
}

/** The tests of one declaration. */
export function describeCrashes(declaration: Declaration): void {
  describe(`kill -9 of a write with ${declaration}`, () => {
    let db: TestDatabase;
    let world: World;
    let crashed: Map<CrashPoint, Ended>;
    let left: Map<CrashPoint, Left>;
    let keys: Map<CrashPoint, string | undefined>;
    let first: Map<CrashPoint, Resumed | undefined>;
    let last: Map<CrashPoint, Resumed | undefined>;

    beforeAll(async () => {
      db = await testDatabase();
      world = await startWorld();
      crashed = await crashEverywhere(db.url, world, declaration);
      left = new Map();
      keys = new Map();
      for (const point of NAMES) {
        left.set(point, await leftBehind(db, world, threadOf(point)));
        keys.set(point, (await stepsOf(db, threadOf(point)))[2]?.key);
      }
      await lengthenLeases(db);
      const resumed = await resume(db.url, world, declaration, NAMES.map(threadOf));
      first = new Map(NAMES.map((point, i) => [point, resumed[i]]));
      last = first;
      if (declaration === "no lookup") last = await letAPersonSettle(db, world, first);
    }, 180_000);
    afterAll(() => world.close());

    it.each(NAMES)("%s: pays once, and the thread ends settled", async (point) => {
      const thread = threadOf(point);
      expect(crashed.get(point)).toMatchObject({ signal: "SIGKILL", lines: [], stderr: "" });
      expect(left.get(point)).toEqual(POINTS[point].left);
      const saidByPerson = declaration === "no lookup" && inDoubt(point) && POINTS[point].left.payments === 1;
      const receipt = saidByPerson ? "as a person says" : world.paymentsOf(thread)[0]?.id;
      const log = ["page 1", "model 1", receipt, "after"];
      expect(last.get(point)).toMatchObject({ thread, stored: true, log });
      await expectSettled(db, world, thread);
      // The key is the same before and after the crash.
      const key = keys.get(point);
      if (key !== undefined) expect(world.paymentsOf(thread)[0]?.key).toBe(key);
    });

    it("goes on at once: the leases of the dead run and of its step end with it", () => {
      // They had an hour to go. A wait for them would have ended the run as busy, or as due in an hour.
      for (const point of NAMES) expect(first.get(point)).not.toHaveProperty("error");
      const unhurried = NAMES.filter((point) => !inDoubt(point)).map((point) => first.get(point));
      const fastest = Math.min(...unhurried.map((resumed) => resumed?.ms ?? Number.NaN));
      // A second on a machine that is idle; on a busy one, no longer than the imports took.
      expect(fastest).toBeLessThan(Math.max(1000, unhurried[0]?.importsMs ?? 0));
    });

    if (declaration === "no lookup") {
      it("pauses what is in doubt, names it in `reconcile list`, and performs nothing meanwhile", () => {
        for (const point of NAMES.filter(inDoubt)) {
          const [question] = first.get(point)?.__interrupt__ ?? [];
          expect(question?.value).toMatchObject({ kind: "NEEDS_RECONCILIATION", idempotencyKey: keys.get(point) });
          expect(first.get(point)?.log).toEqual([]);
        }
        for (const point of NAMES.filter((name) => !inDoubt(name)))
          expect(first.get(point)?.__interrupt__).toBeUndefined();
      });
    }

    if (declaration === "idempotent") {
      it("sends again with the same key, and the provider makes one payment of it", () => {
        const requests = (point: CrashPoint) => world.count("pay", threadOf(point));
        expect(requests("after the effect, before the receipt")).toBe(2);
        expect(requests("after the receipt")).toBe(1);
      });
    }

    if (declaration === "lookup") {
      it("asks the world only about what is in doubt", () => {
        for (const point of NAMES) {
          const requests = world.count("pay", threadOf(point));
          expect({ point, requests }).toEqual({ point, requests: 1 });
        }
        // Once for each, and once more where the first "no" came before the settle time.
        const lookups = world.requests.filter(({ what }) => what === "lookup").length;
        expect([3, 4]).toContain(lookups);
        expect(first.get("after the intent, before the effect")?.ms).toBeGreaterThanOrEqual(SETTLE_MS);
      });
    }
  });
}

/** A person looks at the provider's books and says what is there, for each write that `reconcile list` names. */
async function letAPersonSettle(
  db: TestDatabase,
  world: World,
  first: ReadonlyMap<CrashPoint, Resumed | undefined>,
): Promise<Map<CrashPoint, Resumed | undefined>> {
  const asked = NAMES.filter(inDoubt);
  const { lines } = await longhaul(db.url, "reconcile", "list");
  expect(lines.map(({ threadId, question }) => ({ threadId, question }))).toEqual(
    expect.arrayContaining(asked.map((point) => ({ threadId: threadOf(point), question: "outcome" }))),
  );
  expect(lines).toHaveLength(asked.length);
  await inParallel(lines, 2, async ({ key, threadId }) => {
    const happened = world.paymentsOf(String(threadId)).length > 0;
    const receipt = JSON.stringify({ id: "as a person says" });
    const word = happened ? ["--happened", receipt] : ["--did-not-happen"];
    const settled = await longhaul(db.url, "reconcile", "settle", String(key), "--by", "ann", ...word);
    expect(settled).toMatchObject({ code: 0, lines: [{ key, result: "settled", threadId }] });
  });
  const again = await resume(db.url, world, "no lookup", asked.map(threadOf));
  return new Map(NAMES.map((point) => [point, again[asked.indexOf(point)] ?? first.get(point)]));
}
