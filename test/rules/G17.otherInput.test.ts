// G17: another input at a known key. Before any send it is taken; in doubt, the RECORDED input is looked up; reads
// simply run for it. (After a success: test/cases/DSE-11.)
import { beforeAll, describe, expect, it } from "vitest";
import { canonicalJson, sha256 } from "../../src/core/key.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { oneNode, reset, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const hashOf = (amount: number) => sha256(canonicalJson({ amount }));

describe("G17: another input at a known key", () => {
  it("is taken by a write that was never sent, and the history says what it was before", async () => {
    const sent: number[] = [];
    let amount = 1;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write("pay", { amount }, async () => {
        if (amount === 1)
          throw Object.assign(new Error("no"), { code: "ECONNREFUSED", headers: { "retry-after": "60" } });
        sent.push(amount);
        return `paid ${amount}`;
      }),
    );
    await graph.invoke({ log: [] }, thread("never sent")).catch(() => undefined);
    expect(await stepsOf(db, "never sent")).toMatchObject([{ state: "RETRY_SCHEDULED", doubt: false }]);
    amount = 2;
    await db.advance(61_000);
    expect((await graph.invoke(null, thread("never sent"))).log).toEqual(["paid 2"]);
    expect(sent).toEqual([2]);
    const reasons = await db.sql<{ reason: string }>(
      `select reason from longhaul.step_events e join longhaul.steps s using (key)
       where s.thread_id = 'never sent' and e.to_state = 'RUNNING' and e.attempt = 2`,
    );
    expect(reasons[0]?.reason).toContain(hashOf(1));
    const [row] = await db.sql(
      "select encode(input_hash, 'hex') as hash from longhaul.steps where thread_id = 'never sent'",
    );
    expect(row).toEqual({ hash: hashOf(2) });
  });

  it("does not change what a write in doubt is looked up with, nor become its answer", async () => {
    const looked: unknown[] = [];
    const sent: number[] = [];
    let amount = 1;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        { amount },
        async (): Promise<string> => {
          sent.push(amount);
          throw reset();
        },
        {
          lookup: async ({ input }) => {
            looked.push(input);
            if (looked.length === 1) throw new Error("the provider is away for a while");
            return { outcome: "happened", receipt: "po_1" };
          },
        },
      ),
    );
    const controller = new AbortController();
    const first = graph.invoke({ log: [] }, { ...thread("doubt"), signal: controller.signal });
    await expect.poll(() => looked.length).toBe(1);
    controller.abort();
    await first.catch(() => undefined);
    amount = 2;
    let paused: object = {};
    await expect
      .poll(async () => (paused = await graph.invoke(null, thread("doubt")).catch(() => ({}))), { timeout: 20_000 })
      .toHaveProperty("__interrupt__");
    expect(paused).toMatchObject({
      __interrupt__: [{ value: { kind: "INPUT_DRIFT", inputHash: hashOf(1), newInputHash: hashOf(2) } }],
    });
    expect(looked).toEqual([{ amount: 1 }, { amount: 1 }]);
    expect(sent).toEqual([1]);
  });

  it("is another read, and both are recorded", async () => {
    const asked: number[] = [];
    let page = 1;
    const graph = oneNode(db.openLedger(), async (step) => {
      const text = await step.read("page", { page }, async () => `page ${asked.push(page)}`);
      if (page < 3) throw new Error("dies");
      return text;
    });
    await graph.invoke({ log: [] }, thread("read")).catch(() => undefined);
    page = 2;
    await graph.invoke(null, thread("read")).catch(() => undefined);
    page = 3;
    expect((await graph.invoke(null, thread("read"))).log).toEqual(["page 3"]);
    expect(asked).toEqual([1, 2, 3]);
    expect(await stepsOf(db, "read")).toHaveLength(3);
  });
});
