// A thread that ran inside another one is that one's affair: a worker runs the outer thread, which runs the inner one.
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode } from "../../src/index.js";
import { startWorker, sweep, type WorkerEvent } from "../../src/worker/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

describe("a thread that runs inside another one", () => {
  it("has the outer thread woken in its place, once, and leaves no wake behind", async () => {
    const ledger = db.openLedger();
    let tries = 0;
    const inner = durableGraph(
      new StateGraph(State)
        .addNode(
          "read",
          durableNode(State, async (_state, { step }) => {
            const text = await step.read("page", {}, async () => {
              if (++tries === 1)
                throw Object.assign(new Error("slow"), { status: 429, headers: { "retry-after": "3600" } });
              return "text";
            });
            return { log: [text] };
          }),
        )
        .addEdge(START, "read"),
      { ledger, name: "inner" },
    );
    const outer = durableGraph(
      new StateGraph(State)
        .addNode("call", async () => ({ log: (await inner.invoke({ log: [] }, thread("inner-1"))).log }))
        .addEdge(START, "call"),
      { ledger, name: "outer" },
    );
    await outer.invoke({ log: [] }, thread("outer-1")).catch(() => undefined);
    const recorded = await db.sql("select thread_id, graph, root_thread from longhaul.threads order by 1");
    expect(recorded).toEqual([
      { thread_id: "inner-1", graph: "inner", root_thread: "outer-1" },
      { thread_id: "outer-1", graph: "outer", root_thread: null },
    ]);
    expect(await db.sql("select thread_id from longhaul.wakes")).toEqual([{ thread_id: "inner-1" }]);
    await db.advance(3_700_000);
    const events: WorkerEvent[] = [];
    const onEvent = (event: WorkerEvent) => events.push(event);
    const worker = startWorker({ ledger, graphs: { inner, outer }, pollMs: 100, onEvent, onError: () => {} });
    await expect.poll(() => events.length, { timeout: 10_000 }).toBeGreaterThan(2);
    await worker.stop();
    const woken = events.flatMap((event) => (event.type === "woke" ? [[event.threadId, event.graph]] : []));
    expect(woken).toEqual([["outer-1", "outer"]]);
    expect(await db.sql("select * from longhaul.wakes")).toEqual([]);
  });

  it("is not woken itself when both died", async () => {
    const ledger = db.openLedger();
    await db.sql(
      `insert into longhaul.threads (thread_id, epoch, lease_until, state, root_thread, created_at, updated_at) values
       ('dead-outer', 1, longhaul.ledger_now() - interval '1 s', 'running', null, now(), now()),
       ('dead-inner', 1, longhaul.ledger_now() - interval '1 s', 'running', 'dead-outer', now(), now())`,
    );
    await sweep(ledger);
    const woken = await db.sql("select thread_id from longhaul.wakes where reason = 'its run died'");
    expect(woken).toEqual([{ thread_id: "dead-outer" }]);
  });
});
