// kill -9 before and after every single statement of a run, not only at the points that have a name.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLedger, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type KillPoint, listeningPool } from "../support/pools.js";
import { inParallel, runScript } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import type { ChildTask } from "./child.js";
import { lengthenLeases, type Resumed, stepsOf } from "./matrix.js";
import { type Declaration, paymentGraph, SETTLE_MS } from "./paymentGraph.js";

const DECLARATIONS: readonly Declaration[] = ["lookup", "no lookup", "idempotent"];

interface Crash {
  readonly thread: string;
  readonly kill: KillPoint;
}

describe.each(DECLARATIONS)("kill -9 at every statement of a run whose write has %s", (declaration) => {
  let db: TestDatabase;
  let world: World;
  beforeAll(async () => {
    db = await testDatabase();
    world = await startWorld();
  });
  afterAll(() => world.close());

  const config = (thread: string) => ({ configurable: { thread_id: thread } });

  /** The statements of a run that nothing happens to, in order. */
  async function statements(): Promise<string[]> {
    const pool = new pg.Pool({ connectionString: db.url });
    const names: string[] = [];
    const listening = listeningPool(pool, (name, send) => {
      names.push(name);
      return send();
    });
    const graph = paymentGraph(openLedger({ pool: listening }), world.url, declaration);
    await graph.getState(config("undisturbed"));
    await graph.invoke({ thread: "undisturbed" }, config("undisturbed"));
    await pool.end();
    return names;
  }

  /** What is recorded is not asked for again. */
  async function recorded(thread: string): Promise<Record<string, number>> {
    const names = (await stepsOf(db, thread)).filter(({ state }) => state === "SUCCEEDED").map(({ name }) => name);
    return Object.fromEntries(names.map((name) => [name, world.count(name, thread)]));
  }

  /** Runs a thread to its end; a person looks at the provider's books when asked to. */
  async function finish(thread: string): Promise<Pick<Resumed, "log">> {
    const ledger = db.openLedger({ maxConnections: 2 });
    const graph = paymentGraph(ledger, world.url, declaration);
    const stored = (await graph.getState(config(thread))).config.configurable?.["checkpoint_id"] !== undefined;
    const result: Resumed = await graph
      .invoke(stored ? null : { thread }, config(thread))
      .then((state) => state as unknown as Resumed);
    const key = result.__interrupt__?.[0]?.value.idempotencyKey;
    if (key === undefined) return result;
    expect(declaration).toBe("no lookup");
    const [payment] = world.paymentsOf(thread);
    const word =
      payment === undefined
        ? { outcome: "did-not-happen" as const }
        : { outcome: "happened" as const, receipt: payment };
    const say = () => settle(ledger, { idempotencyKey: key, by: "ann", ...word }).then((answer) => answer.result);
    await expect.poll(say, { timeout: 10 * SETTLE_MS }).toBe("settled");
    return graph.invoke(null, config(thread));
  }

  it("pays once, asks for nothing twice that was recorded, and ends settled", async () => {
    const names = await statements();
    const crashes: Crash[] = names.flatMap((name, i) =>
      (["before", "after"] as const).map((at) => ({
        thread: `${i + 1}-${at}-${name}`,
        kill: { statement: "*", nth: i + 1, at },
      })),
    );
    await inParallel(crashes, 3, async ({ thread, kill }) => {
      const task: ChildTask = { url: db.url, worldUrl: world.url, threads: [{ thread, declaration }], kill };
      const ended = await runScript("test/crash/child.ts", [JSON.stringify(task)]);
      expect({ thread, ...ended }).toMatchObject({ signal: "SIGKILL", stderr: "" });
    });
    await lengthenLeases(db);
    const ends = await inParallel(crashes, 4, async ({ thread }) => {
      const before = await recorded(thread);
      const { log } = await finish(thread);
      const counts = Object.fromEntries(Object.keys(before).map((name) => [name, world.count(name, thread)]));
      const steps = await stepsOf(db, thread);
      const open = steps.filter(({ state, doubt }) => state !== "SUCCEEDED" || doubt);
      const [state] = await db.sql("select state from longhaul.threads where thread_id = $1", [thread]);
      return { thread, before, counts, open, ...state, payments: world.paymentsOf(thread).length, last: log.at(-1) };
    });
    expect(crashes.length).toBeGreaterThan(20);
    for (const end of ends) {
      expect(end).toEqual({ ...end, counts: end.before, open: [], state: "done", payments: 1, last: "after" });
    }
  }, 400_000);
});
