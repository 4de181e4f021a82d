// The package's own tools for tests, used as a user's test would use them.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { durable, durableGraph, durableNode, type Ledger, requestApproval, settle } from "../../src/index.js";
import {
  assertNeedsReconciliation,
  assertOnce,
  type CountingWorld,
  type CrashPoint,
  countingWorld,
  PausedError,
  type TestLedger,
  testLedger,
  withLedger,
} from "../../src/testing/index.js";
import { admin } from "../support/database.js";

const server = () => inject("postgresUrl");
let t: TestLedger;
let world: CountingWorld;
beforeAll(async () => {
  t = await testLedger({ url: server() });
});
afterAll(() => t.close());
beforeEach(async () => {
  world = await countingWorld();
  return () => world.close();
});

const State = Annotation.Root({ paid: Annotation<number> });

/** A graph that pays once; with a lookup it can find out whether it did. */
function payment(ledger: Ledger, withLookup = true) {
  const at = () => `${world.url}/pay`;
  const headers = (idempotencyKey: string) => ({ "idempotency-key": idempotencyKey });
  const options = {
    settleMs: 1,
    lookup: async ({ idempotencyKey }: { idempotencyKey: string }) => {
      const answer = await fetch(at(), { headers: headers(idempotencyKey) });
      if (answer.status === 404) return { outcome: "did-not-happen" as const };
      return { outcome: "happened" as const, receipt: ((await answer.json()) as { id: number }).id };
    },
  };
  const builder = new StateGraph(State)
    .addNode(
      "pay",
      durableNode(State, async (_state, { step }) => ({
        paid: await step.write(
          "pay",
          { amount: 7 },
          async ({ idempotencyKey }) => {
            const answer = await fetch(at(), {
              method: "POST",
              headers: headers(idempotencyKey),
              body: '{"amount":7}',
            });
            return ((await answer.json()) as { id: number }).id;
          },
          withLookup ? options : {},
        ),
      })),
    )
    .addEdge(START, "pay")
    .addEdge("pay", END);
  return durableGraph(builder, { ledger });
}
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const POINTS: CrashPoint[] = [
  "before-intent",
  "after-intent",
  "before-receipt",
  "after-receipt",
  "before-checkpoint",
  "after-checkpoint",
];

describe("testLedger", () => {
  it.each(POINTS)("has a ledger that dies %s, and another that goes on: the effect happens once", async (point) => {
    const dying = payment(t.crashing(point));
    await expect(dying.invoke({}, thread(point))).rejects.toThrow();
    await t.advanceClock(60_000);
    const graph = payment(t.ledger);
    const { next } = await graph.getState(thread(point));
    const result =
      next.length === 0 ? (await graph.getState(thread(point))).values : await graph.invoke(null, thread(point));
    expect(result).toMatchObject({ paid: 1 });
    assertOnce(world, "/pay");
    expect(world.effects[0]?.body).toEqual({ amount: 7 });
  });

  it("shows a write without a lookup as in need of reconciliation, until somebody settles it", async () => {
    await expect(payment(t.crashing("before-receipt"), false).invoke({}, thread("doubt"))).rejects.toThrow();
    await t.advanceClock(60_000);
    const graph = payment(t.ledger, false);
    await graph.invoke(null, thread("doubt"));
    const { idempotencyKey } = await assertNeedsReconciliation(t.ledger, "doubt", "pay");
    expect(idempotencyKey).toBe(world.effects[0]?.key);
    await settle(t.ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: 1 });
    expect(await graph.invoke(null, thread("doubt"))).toEqual({ paid: 1 });
    await expect(assertNeedsReconciliation(t.ledger, "doubt")).rejects.toThrow(
      /No write of thread "doubt" needs reconciliation/,
    );
  });

  it("is a database of its own, which is gone when it is closed; and nothing of it exists in production", async () => {
    const other = await testLedger({ url: server() });
    await payment(other.ledger).invoke({}, thread("own"));
    const name = new URL(other.url).pathname.slice(1);
    const exists = () =>
      admin(async (client) => (await client.query("select 1 from pg_database where datname = $1", [name])).rowCount);
    expect(await exists()).toBe(1);
    await other.close();
    expect(await exists()).toBe(0);
    process.env["NODE_ENV"] = "production";
    await expect(testLedger({ url: server() })).rejects.toThrow(/production/);
    process.env["NODE_ENV"] = "test";
  });

  it("refuses a point that is none, a pool, and a server that is not there", async () => {
    expect(() => t.crashing("sometime" as never)).toThrow(/before-intent/);
    await expect(testLedger({ pool: {} } as never)).rejects.toThrow(/no `pool`/);
    await expect(testLedger({ url: "postgres://nobody@127.0.0.1:9/none" })).rejects.toThrow(/could not be made/);
  });
});

describe("assertOnce", () => {
  it("fails for an effect that happened twice, or never", async () => {
    expect(() => assertOnce(world)).toThrow(/No effect has happened/);
    const send = (key: string) =>
      fetch(`${world.url}/mail`, { method: "POST", headers: { "idempotency-key": key }, body: "hi" });
    await send("a");
    await send("b");
    assertOnce(world);
    expect(() => assertOnce(world, "/pay")).toThrow(/No effect at \/pay/);
    await send("a");
    expect(() => assertOnce(world, "/mail")).toThrow(/more than once under one key: \/mail a \(2 times\)/);
    expect([world.count(), world.count("/mail"), world.count("/pay"), world.lookups]).toEqual([3, 3, 0, 0]);
  });

  it("sees an effect whose answer was lost", async () => {
    world.beforeAnswer = () => {
      throw new Error("lost");
    };
    await expect(fetch(`${world.url}/pay`, { method: "POST" })).rejects.toThrow();
    assertOnce(world, "/pay");
  });
});

describe("withLedger", () => {
  it("runs one function with recorded steps, and again after it threw without repeating them", async () => {
    let reads = 0;
    const node = (dies: boolean) =>
      withLedger(
        t.ledger,
        async (runtime) => {
          const read = await durable(runtime).step.read("page", { url: "u" }, async () => `read ${++reads}`);
          if (dies) throw new Error("dies");
          return new Map([["read", read]]);
        },
        { threadId: "one node" },
      );
    await expect(node(true)).rejects.toThrow("dies");
    expect(await node(false)).toEqual(new Map([["read", "read 1"]]));
    expect(await node(false)).toEqual(new Map([["read", "read 2"]]));
  });

  it("tells what the function asks when it pauses", async () => {
    const asks = withLedger(t.ledger, (runtime) => requestApproval(runtime, { action: "publish", args: { n: 1 } }));
    await expect(asks).rejects.toThrow(PausedError);
    await expect(asks).rejects.toThrow(/publish/);
  });
});
