// What a cancel leaves behind, and what lifts it. (A cancel that meets a run: test/cases/CAN-01, CAN-02.)
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph-checkpoint";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  approvalNode,
  approvalsOf,
  cancelRun,
  drainReason,
  durableGraph,
  durableNode,
  openLedger,
  redrive,
} from "../../src/index.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { deferred, oneNode, reset, State, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";
import { longhaul } from "../support/script.js";
import { startWorker } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
let ledger: OpenedLedger;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
  ledger = db.openLedger();
});
afterAll(() => world.close());

const later = (seconds: string) =>
  Object.assign(new Error("later"), { status: 503, headers: { "retry-after": seconds } });
const kindOf = (error: unknown) => drainReason(error)?.kind;
const caught = (running: Promise<unknown>) => running.catch((error: unknown) => error);
const threadRow = async (threadId: string) =>
  (
    await db.sql(
      "select state, cancel_requested_by as by, exists (select from longhaul.wakes w where w.thread_id = t.thread_id) as woken from longhaul.threads t where thread_id = $1",
      [threadId],
    )
  )[0];

describe("a cancel of a thread that nobody runs", () => {
  it("that waits for a person is at once, and is refused an answer until it is lifted; then it asks again", async () => {
    const builder = new StateGraph(State)
      .addNode("ask", async () => ({ log: [String(interrupt("pay?"))] }))
      .addEdge(START, "ask");
    const graph = durableGraph(builder, { ledger });
    await graph.invoke({ log: [] }, thread("asks"));
    expect(await cancelRun(ledger, { threadId: "asks", by: "ann", reason: "no longer wanted" })).toMatchObject({
      result: "cancelled",
      applied: true,
      cancel: { by: "ann", reason: "no longer wanted" },
    });
    expect(await threadRow("asks")).toEqual({ state: "cancelled", by: "ann", woken: false });
    for (const input of [null, { log: ["new"] }]) {
      await expect(graph.invoke(input, thread("asks"))).rejects.toMatchObject({
        code: "CANCELLED",
        status: 409,
        message: expect.stringMatching(/cancelled by ann at .+\(no longer wanted\).+longhaul redrive asks/),
      });
    }
    expect(await redrive(ledger, { threadId: "asks", by: "ben" })).toEqual([]);
    expect(await threadRow("asks")).toEqual({ state: "due", by: null, woken: true });
    expect(await graph.invoke(null, thread("asks"))).toHaveProperty("__interrupt__");
  });

  it("drops what waits for its time, which is ready again when the cancel is lifted", async () => {
    let tries = 0;
    const graph = oneNode(ledger, (step) =>
      step.write("send", 1, async () => {
        if (++tries === 1) throw later("3600");
        return "sent";
      }),
    );
    expect(kindOf(await caught(graph.invoke({ log: [] }, thread("waits"))))).toBe("due");
    await cancelRun(ledger, { threadId: "waits", by: "ann" });
    expect(await stepsOf(db, "waits")).toMatchObject([{ state: "CANCELLED", attempt: 1 }]);
    expect(await threadRow("waits")).toMatchObject({ state: "cancelled", woken: false });
    expect(await redrive(ledger, { threadId: "waits", by: "ben" })).toHaveLength(1);
    expect((await graph.invoke(null, thread("waits"))).log).toEqual(["sent"]);
    expect(tries).toBe(2);
  });

  it("leaves what may have happened in doubt, and what waits beside it is dropped", async () => {
    const graph = oneNode(ledger, (step) =>
      Promise.all([
        step.write("lost", 1, async () => {
          throw reset();
        }),
        step.write("waits", 1, async () => {
          throw later("3600");
        }),
      ]),
    );
    await caught(graph.invoke({ log: [] }, thread("doubt")));
    expect(await cancelRun(ledger, { threadId: "doubt", by: "ann" })).toMatchObject({ inDoubt: [expect.any(String)] });
    const states = (await stepsOf(db, "doubt")).map(({ name, state }) => `${name} ${state}`).sort();
    expect(states).toEqual(["lost NEEDS_RECONCILIATION", "waits CANCELLED"]);
    await redrive(ledger, { threadId: "doubt", by: "ann" });
    expect((await stepsOf(db, "doubt")).map(({ state }) => state).sort()).toEqual(["NEEDS_RECONCILIATION", "READY"]);
  });

  it("whose process was killed in the middle of a write is at once, and that write is asked about", async () => {
    const sent = deferred();
    world.beforeAnswer = () => {
      sent.resolve();
      return new Promise(() => {});
    };
    const task = { url: db.url, worldUrl: world.url, thread: "killed", shape: "guarded", input: "new" } as const;
    const worker = startWorker(task);
    await sent.promise;
    worker.child.kill("SIGKILL");
    await worker.ended;
    expect(await cancelRun(ledger, { threadId: "killed", by: "ann" })).toMatchObject({ result: "cancelled" });
    expect(await stepsOf(db, "killed")).toMatchObject([{ state: "NEEDS_RECONCILIATION", doubt: true }]);
    world.beforeAnswer = () => {};
  });

  it("that has come to its end changes nothing; one cancel of many is applied", async () => {
    const graph = oneNode(ledger, async () => "done");
    await graph.invoke({ log: [] }, thread("done"));
    const answer = await cancelRun(ledger, { threadId: "done", by: "ann" });
    expect(answer).toMatchObject({ result: "already ended", applied: false, cancel: undefined });
    expect((await graph.invoke({ log: [] }, thread("done"))).log).toEqual(["done", "done"]);

    await oneNode(ledger, async (step) => step.write("w", 1, () => Promise.reject(later("99"))))
      .invoke({ log: [] }, thread("many"))
      .catch(() => undefined);
    const people = ["ann", "ben", "cyd", "dan"];
    const answers = await Promise.all(people.map((by) => cancelRun(ledger, { threadId: "many", by })));
    const winner = answers.findIndex(({ applied }) => applied);
    expect(answers.filter(({ applied }) => applied)).toHaveLength(1);
    expect(new Set(answers.map(({ cancel }) => cancel?.by))).toEqual(new Set([people[winner]]));
  });

  it.each([
    [{ threadId: "nobody", by: "ann" }, "NOT_FOUND"],
    [{ threadId: "", by: "ann" }, "INVALID_OPTION"],
    [{ threadId: "done", by: "" }, "INVALID_OPTION"],
    [{ threadId: "done", by: 7 as never }, "INVALID_OPTION"],
    [{ threadId: "done", by: "ann", reason: {} as never }, "INVALID_OPTION"],
  ])("%j is refused with %s", async (request, code) => {
    await expect(cancelRun(ledger, request)).rejects.toMatchObject({ code });
  });

  it("carries any text as its reason", async () => {
    await oneNode(ledger, async (step) => step.write("w", 1, () => Promise.reject(later("99"))))
      .invoke({ log: [] }, thread("text"))
      .catch(() => undefined);
    const reason = `nul \0 half \ud800 ${"x".repeat(10_000)}`;
    const { cancel } = await cancelRun(ledger, { threadId: "text", by: "ann", reason });
    expect(cancel?.reason).toHaveLength(500);
  });
});

describe("a cancel of a run", () => {
  it("lets no step be claimed after its commit, whenever it comes", async () => {
    for (let round = 0; round < 12; round++) {
      const threadId = `race-${round}`;
      const [own, operators] = [db.openLedger(), ledger];
      const begun = deferred();
      const graph = oneNode(own, async (step) => {
        for (let i = 0; i < 200; i++) {
          await step.write("send", i, async () => i);
          if (i === round) begun.resolve();
        }
      });
      const running = caught(graph.invoke({ log: [] }, thread(threadId)));
      await begun.promise;
      await cancelRun(operators, { threadId, by: "ann" });
      const atOnce = (await stepsOf(db, threadId)).length;
      expect(kindOf(await running)).toBe("cancelled");
      expect(await stepsOf(db, threadId)).toHaveLength(atOnce);
      expect(await threadRow(threadId)).toMatchObject({ state: "cancelled" });
    }
    const late = `select s.name from longhaul.steps s join longhaul.thread_events e using (thread_id)
      where e.kind = 'cancel requested' and s.claimed_at > e.at and thread_id like 'race-%'`;
    expect(await db.sql(late)).toEqual([]);
  });

  it("lets no plain model call and no plain node begin, also where the code catches that", async () => {
    const model = new FakeListChatModel({ responses: ["hello"] });
    let asked = 0;
    const generate = model._generate.bind(model);
    model._generate = async (...call) => {
      asked++;
      return generate(...call);
    };
    let after = 0;
    const builder = new StateGraph(State)
      .addNode("node", async () => {
        await cancelRun(ledger, { threadId: "plain", by: "ann" });
        await model.invoke("hi").catch(() => undefined);
        return { log: ["went on"] };
      })
      .addNode("after", async () => {
        after++;
        return {};
      })
      .addEdge(START, "node")
      .addEdge("node", "after")
      .addEdge("after", END);
    const error = await caught(durableGraph(builder, { ledger }).invoke({ log: [] }, thread("plain")));
    expect([kindOf(error), asked, after]).toEqual(["cancelled", 0, 0]);
  });

  it("is learned at the next node where the graph keeps a checkpointer of its own", async () => {
    const own = db.openLedger();
    let after = 0;
    const builder = new StateGraph(State)
      .addNode("node", async () => {
        await cancelRun(ledger, { threadId: "foreign", by: "ann" });
        return {};
      })
      .addNode("after", async () => {
        after++;
        return {};
      })
      .addEdge(START, "node")
      .addEdge("node", "after");
    const graph = durableGraph(builder.compile({ checkpointer: new MemorySaver() }), { ledger: own });
    expect(kindOf(await caught(graph.invoke({ log: [] }, thread("foreign"))))).toBe("cancelled");
    expect([after, await threadRow("foreign")]).toEqual([0, { state: "cancelled", by: "ann", woken: false }]);
  });

  it("reaches the graphs that it runs on threads of their own, and is lifted with theirs", async () => {
    const own = db.openLedger();
    const made: string[] = [];
    let cancels = true;
    const inner = oneNode(own, async (step) => {
      await step.write("first", 1, async () => made.push("first"));
      if (cancels) await cancelRun(ledger, { threadId: "parent", by: "ann" });
      await step.write("second", 1, async () => made.push("second"));
      return "inner";
    });
    const outer = durableNode(State, async () => ({ log: (await inner.invoke({ log: [] }, thread("child"))).log }));
    const graph = durableGraph(new StateGraph(State).addNode("outer", outer).addEdge(START, "outer"), { ledger: own });
    expect(kindOf(await caught(graph.invoke({ log: [] }, thread("parent"))))).toBe("cancelled");
    expect(made).toEqual(["first"]);
    for (const name of ["parent", "child"])
      await expect.poll(() => threadRow(name)).toEqual({ state: "cancelled", by: "ann", woken: false });
    cancels = false;
    await redrive(ledger, { threadId: "parent", by: "ben" });
    expect(await threadRow("child")).toMatchObject({ by: null, woken: false });
    await expect(inner.invoke(null, thread("child"))).resolves.toMatchObject({ log: ["inner"] });
  });

  it("closes what a graph inside asks, and is lifted with it", async () => {
    const inner = durableGraph(
      new StateGraph(State)
        .addNode(
          "ask",
          approvalNode({ request: () => ({ action: "go", args: {} }), decided: () => ({ log: ["went"] }) }),
        )
        .addEdge(START, "ask"),
      { ledger },
    );
    const outer = durableNode(State, async () => {
      const result = await inner.invoke({ log: [] }, thread("asker"));
      if ("__interrupt__" in result) interrupt("the one inside waits");
      return { log: result.log };
    });
    const graph = durableGraph(new StateGraph(State).addNode("outer", outer).addEdge(START, "outer"), { ledger });
    await graph.invoke({ log: [] }, thread("waits outside")).catch(() => undefined);
    const asked = () => approvalsOf(ledger, { threadId: "asker" });
    expect(await asked()).toMatchObject([{ status: "pending" }]);
    await cancelRun(ledger, { threadId: "waits outside", by: "ann" });
    expect(await asked()).toMatchObject([{ status: "cancelled" }]);
    expect(await threadRow("asker")).toMatchObject({ state: "cancelled", by: "ann" });
    await redrive(ledger, { threadId: "waits outside", by: "ben" });
    expect(await threadRow("asker")).toMatchObject({ state: "due", by: null });
  });

  it("starts no graph inside after its commit, and calls no error handler for that", async () => {
    const own = db.openLedger();
    let [ran, handled] = [0, 0];
    const inner = oneNode(own, async () => ran++);
    const builder = new StateGraph(State)
      .addNode(
        "outer",
        async () => {
          await cancelRun(ledger, { threadId: "around", by: "ann" });
          return { log: (await inner.invoke({ log: [] }, thread("never"))).log };
        },
        {
          errorHandler: async () => {
            handled++;
            return {};
          },
        },
      )
      .addEdge(START, "outer");
    const graph = durableGraph(builder, { ledger: own });
    expect(kindOf(await caught(graph.invoke({ log: [] }, thread("around"))))).toBe("cancelled");
    expect([ran, handled, await threadRow("never")]).toEqual([0, 0, undefined]);
    expect(await threadRow("around")).toMatchObject({ state: "cancelled" });
  });

  it("of a graph that runs inside leaves the one around it as failed, not as cancelled", async () => {
    const own = db.openLedger();
    const inner = oneNode(own, async (step) => {
      await cancelRun(ledger, { threadId: "alone", by: "ann" });
      return step.write("w", 1, async () => 1);
    });
    const outer = durableNode(State, async () => ({ log: (await inner.invoke({ log: [] }, thread("alone"))).log }));
    const graph = durableGraph(new StateGraph(State).addNode("outer", outer).addEdge(START, "outer"), { ledger: own });
    expect(drainReason(await caught(graph.invoke({ log: [] }, thread("left"))))).toMatchObject({ threadId: "alone" });
    expect(await threadRow("alone")).toMatchObject({ state: "cancelled", by: "ann" });
    expect(await threadRow("left")).toMatchObject({ state: "failed", by: null });
  });

  it("that comes after its last checkpoint is too late, and says so", async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 3 });
    const own = openLedger({
      pool: listeningPool(pool, async (name, send) => {
        if (name === "lh_release_run") await cancelRun(ledger, { threadId: "late", by: "ann" });
        return send();
      }),
    });
    const graph = oneNode(own, async () => "done");
    expect((await graph.invoke({ log: [] }, thread("late"))).log).toEqual(["done"]);
    expect(await threadRow("late")).toEqual({ state: "done", by: null, woken: false });
    const events = await db.sql("select kind from longhaul.thread_events where thread_id = 'late' order by id");
    expect(events.map(({ kind }) => kind)).toEqual(["cancel requested", "cancel came too late"]);
    await own.close();
    await pool.end();
  });

  it("cannot be lifted before it has stopped", async () => {
    const [started, gate] = [deferred(), deferred()];
    const graph = oneNode(ledger, (step) =>
      step.write("slow", 1, async () => {
        started.resolve();
        await gate.promise;
      }),
    );
    const running = caught(graph.invoke({ log: [] }, thread("slow")));
    await started.promise;
    await cancelRun(ledger, { threadId: "slow", by: "ann" });
    await expect(redrive(ledger, { threadId: "slow", by: "ann" })).rejects.toMatchObject({ code: "THREAD_BUSY" });
    gate.resolve();
    await running;
    await redrive(ledger, { threadId: "slow", by: "ann" });
    expect(await threadRow("slow")).toMatchObject({ state: "due" });
  });
});

describe("longhaul cancel", () => {
  it("says what it did and what stands, and runs, show and redrive tell of it", async () => {
    let fails = true;
    const graph = oneNode(ledger, async (step) => {
      await step.write("pay", 1, async () => "po_1");
      return step.write("ship", 1, async () => {
        if (fails) throw later("3600");
        return "shipped";
      });
    });
    await caught(graph.invoke({ log: [] }, thread("cli")));
    const first = await longhaul(db.url, "cancel", "cli", "--by", "ann", "--reason", "wrong order");
    expect([first.code, first.lines]).toMatchObject([
      0,
      [{ threadId: "cli", result: "cancelled", applied: true, committed: [expect.any(String)], inDoubt: [] }],
    ]);
    const again = await longhaul(db.url, "cancel", "cli", "--by", "ben");
    expect([again.code, again.lines]).toMatchObject([3, [{ applied: false, cancel: { by: "ann" } }]]);
    const runs = (await longhaul(db.url, "runs")).lines.find(({ threadId }) => threadId === "cli");
    expect(runs).toMatchObject({ state: "cancelled", cancel: { by: "ann", reason: "wrong order" } });
    const [shown = {}] = (await longhaul(db.url, "show", "cli", "--history")).lines.slice(-1);
    expect(shown).toMatchObject({ state: "CANCELLED" });
    const history = shown["history"] as object[];
    expect(history.at(-1)).toMatchObject({ actor: "ann", reason: "cancelled: wrong order" });
    const lifted = await longhaul(db.url, "redrive", "cli", "--by", "ben");
    expect([lifted.code, lifted.lines]).toMatchObject([0, [{ cancelLifted: true, redriven: [expect.any(String)] }]]);
    fails = false;
    expect((await graph.invoke(null, thread("cli"))).log).toEqual(["shipped"]);
    expect((await longhaul(db.url, "cancel", "nobody")).lines).toMatchObject([{ error: "NOT_FOUND" }]);
  });
});
