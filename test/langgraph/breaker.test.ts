import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason, durableGraph, durableNode, operation } from "../../src/index.js";
import { createBreakers } from "../../src/postgres/breakers.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const HOUR = 3_600_000;

describe("a circuit breaker", () => {
  it("opens for all workers after its failures, and half open lets exactly one of them probe", async () => {
    const workers = await Promise.all(
      [1, 2, 3, 4].map(async () => createBreakers(await databaseOf(db.openLedger({ maxConnections: 2 })), "")),
    );
    const policy = { threshold: 3, cooldownMs: HOUR };
    const enter = (i: number) => workers[i]?.enter("shared", policy, 1000);
    expect(await enter(0)).toEqual({ pass: "closed", failures: 0 });
    for (let i = 0; i < 3; i++) await workers[i]?.failed("shared", policy);
    expect(await enter(3)).toMatchObject({ openForMs: expect.any(Number) });
    await db.advance(HOUR);
    const passages = await Promise.all([0, 1, 2, 3, 0, 1, 2, 3].map(enter));
    expect(passages.filter((passage) => passage !== undefined && "pass" in passage)).toEqual([
      { pass: "probe", failures: 3 },
    ]);
    await workers[2]?.failed("shared", policy);
    expect(await enter(0)).toMatchObject({ openForMs: expect.any(Number) });
    await db.advance(HOUR);
    expect(await enter(1)).toMatchObject({ pass: "probe" });
    await workers[1]?.succeeded("shared");
    expect(await enter(0)).toEqual({ pass: "closed", failures: 0 });
  });

  it("keeps a write back while it is open, until it is due, and counts no failure of its own", async () => {
    const world = { calls: 0, down: true };
    const book = operation({
      name: "book",
      version: "1.0.0",
      effect: "write",
      breaker: { threshold: 2, cooldownMs: HOUR },
      run: async () => {
        world.calls++;
        if (world.down) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        return "booked";
      },
    });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(book, null)] })),
        )
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger: db.openLedger() },
    );
    const error = await graph.invoke({ log: [] }, thread("kept-back")).catch((e: unknown) => e);
    expect(drainReason(error)).toMatchObject({ kind: "due" });
    expect(world.calls).toBe(2);
    expect(await db.sql("select state, failures from longhaul.steps where thread_id = 'kept-back'")).toEqual([
      { state: "RETRY_SCHEDULED", failures: 2 },
    ]);
    expect(await db.sql("select 1 as n from longhaul.wakes where thread_id = 'kept-back'")).toEqual([{ n: 1 }]);
    world.down = false;
    await db.advance(HOUR);
    expect((await graph.invoke(null, thread("kept-back"))).log).toEqual(["booked"]);
    expect(await db.sql("select 1 from longhaul.breakers where name = 'book'")).toEqual([]);
  });

  it("does not open for errors that are the call's own fault", async () => {
    let calls = 0;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "a",
          durableNode(State, async (_s, { step }) => {
            const bad = async () => {
              calls++;
              throw Object.assign(new Error("no such page"), { status: 404 });
            };
            for (let i = 0; i < 3; i++)
              await step.read("page", { i }, bad, { breaker: { threshold: 1, cooldownMs: HOUR } }).catch(() => {});
            return { log: [String(calls)] };
          }),
        )
        .addEdge(START, "a")
        .addEdge("a", END),
      { ledger: db.openLedger() },
    );
    expect((await graph.invoke({ log: [] }, thread("own-fault"))).log).toEqual(["3"]);
  });

  it("is one for each tenant, and for each namespace of the ledger: one that is down does not stop the others", async () => {
    const sent: string[] = [];
    const book = operation({
      name: "book-for",
      version: "1.0.0",
      effect: "write",
      breaker: { threshold: 1, cooldownMs: HOUR, tenant: (input: { account: string }) => input.account },
      run: async ({ account }: { account: string }) => {
        sent.push(account);
        if (account === "revoked") throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        return account;
      },
    });
    const run = (account: unknown, id: string, namespace = "") =>
      durableGraph(
        new StateGraph(State)
          .addNode(
            "a",
            durableNode(State, async (_s, { step }) => ({
              log: [await step.run(book, { account: account as string })],
            })),
          )
          .addEdge(START, "a")
          .addEdge("a", END),
        { ledger: db.openLedger({ namespace }) },
      )
        .invoke({ log: [] }, thread(id))
        .then(
          (state) => state.log,
          (error: Error & { code?: string }) => drainReason(error)?.kind ?? error.code,
        );
    expect(await run("revoked", "tenant-1")).toBe("due");
    expect(await run("revoked", "tenant-2")).toBe("due");
    expect(await run("paying", "tenant-3")).toEqual(["paying"]);
    expect(await run("revoked", "tenant-4", "other")).toBe("due");
    expect(sent).toEqual(["revoked", "paying", "revoked"]);
    expect(await run(undefined, "tenant-5")).toBe("INVALID_OPTION");
    expect(await db.sql("select 1 from longhaul.steps where thread_id = 'tenant-5'")).toEqual([]);
  });
});
