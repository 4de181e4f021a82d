// G19: a server queues runs itself, so there a run waits for a busy thread, at most one lease, then drains and leaves a
// wake. Elsewhere it drains at once.
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { deferred, oneNode, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const LEASE_MS = 1500;
const onServer = { metadata: { langgraph_host: "self-hosted" } };

/** A run that holds its thread until it is let go, and renews meanwhile. */
async function holding(id: string) {
  const reached = deferred();
  const gate = deferred<string>();
  const graph = oneNode(db.openLedger({ leaseMs: LEASE_MS }), async () => {
    reached.resolve();
    return gate.promise;
  });
  const running = graph.invoke({ log: [] }, thread(id));
  await reached.promise;
  return { running, letGo: () => gate.resolve("first") };
}

const second = (ran: string[]) =>
  oneNode(db.openLedger({ leaseMs: LEASE_MS }), async () => {
    ran.push("second");
    return "second";
  });

const wakes = (threadId: string) => db.sql("select reason from longhaul.wakes where thread_id = $1", [threadId]);

describe("G19: a busy thread on a server", () => {
  it("is waited for one lease, then left as drained with a wake, before any node", async () => {
    const { running, letGo } = await holding("held");
    const ran: string[] = [];
    const startedAt = performance.now();
    const left = await second(ran)
      .invoke({ log: [] }, { ...thread("held"), ...onServer })
      .catch(drainReason);
    expect(left).toMatchObject({ kind: "busy", dueAt: expect.any(String) });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(LEASE_MS);
    expect(ran).toEqual([]);
    expect(await wakes("held")).toEqual([{ reason: "the thread was busy" }]);
    letGo();
    expect((await running).log).toEqual(["first"]);
    expect(await wakes("held")).toHaveLength(1);
  });

  it("is run as soon as it is free within that time", async () => {
    const { running, letGo } = await holding("freed");
    const ran: string[] = [];
    const waiting = second(ran).invoke({ log: [] }, { ...thread("freed"), ...onServer });
    letGo();
    await running;
    expect((await waiting).log).toEqual(["first", "second"]);
  });

  it("elsewhere is left at once, and no wake is written for a caller who will ask again", async () => {
    const { running, letGo } = await holding("here");
    const ran: string[] = [];
    expect(await second(ran).invoke({ log: [] }, thread("here")).catch(drainReason)).toMatchObject({ kind: "busy" });
    expect([ran, await wakes("here")]).toEqual([[], []]);
    letGo();
    await running;
  });
});
