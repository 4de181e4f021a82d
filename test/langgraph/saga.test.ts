// Settling a thread's unknown writes, and undoing its known ones.
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it, vi } from "vitest";
import {
  compensate,
  compensateNode,
  durableGraph,
  durableNode,
  type LookupAnswer,
  operation,
  reconcile,
  reconcileNode,
  redrive,
  type SagaReport,
  settle,
} from "../../src/index.js";
import { duplicateEffects } from "../../src/postgres/lateReceipts.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const State = Annotation.Root({
  go: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
  report: Annotation<SagaReport | undefined>,
});
const thread = (thread_id: string) => ({ configurable: { thread_id } });
const lost = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

const keyOf = (interrupt: { value?: unknown } | undefined) => {
  const value = interrupt?.value as { idempotencyKey: string } | undefined;
  return value?.idempotencyKey ?? "";
};

/** A provider with accounts a, b, c, d: books, undoes, loses answers, and refuses undos as told. */
function provider() {
  const calls: string[] = [];
  const losing = new Set<string>();
  const refusing = new Set<string>();
  const answers = new Map<string, LookupAnswer<string>>();
  const book = (name: string, looksUp = true) =>
    operation({
      name,
      version: "1.0.0",
      effect: "write",
      settleMs: 100,
      run: async (_input: null) => {
        calls.push(name);
        if (losing.has(name)) throw lost();
        return `${name} booked`;
      },
      ...(looksUp
        ? { lookup: async () => answers.get(name) ?? { outcome: "happened" as const, receipt: `${name} found` } }
        : {}),
      compensate: async ({ receipt }) => {
        calls.push(`undo ${receipt}`);
        if (refusing.has(name)) throw Object.assign(new Error(`${name} cannot be undone`), { status: 422 });
      },
    });
  return { calls, losing, refusing, answers, book };
}

describe("compensation", () => {
  it("CMP-02: settles what is in doubt first, undoes newest first, and shows a failed undo as incomplete", async () => {
    const p = provider();
    const [a, b, c, d] = [p.book("a"), p.book("b"), p.book("c"), p.book("d")];
    p.losing.add("d");
    p.refusing.add("b");
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => {
            for (const operation of [a, b, c]) await step.run(operation, null);
            await step
              .run({ ...d, onUnknown: "throw", lookup: async () => ({ outcome: "cannot-tell" }) }, null)
              .catch(() => {});
            return { log: ["worked"] };
          }),
        )
        .addNode("undo", compensateNode({ done: (report: SagaReport) => ({ report }) }))
        .addEdge(START, "work")
        .addEdge("work", "undo")
        .addEdge("undo", END),
      { ledger: db.openLedger(), operations: [a, b, c, d] },
    );
    await graph.invoke({ go: "" }, thread("cmp-02"));
    // d is in doubt: nothing is undone before a person has said what became of it.
    expect(p.calls).toEqual(["a", "b", "c", "d"]);
    const [question] = (await graph.getState(thread("cmp-02"))).tasks.flatMap((task) => task.interrupts);
    const idempotencyKey = keyOf(question);
    await settle(db.openLedger(), { idempotencyKey, by: "ann", outcome: "happened", receipt: "d found" });
    const { report } = await graph.invoke(null, thread("cmp-02"));
    expect(p.calls.slice(4)).toEqual(["undo d found", "undo c booked", "undo b booked", "undo a booked"]);
    expect(report).toMatchObject({ complete: false, failed: [{ name: "b", message: "b cannot be undone" }] });
    expect(report?.undone.map((step) => step.name)).toEqual(["d", "c", "a"]);
    const rows = await db.sql(
      "select name, state from longhaul.steps where thread_id = 'cmp-02' and name not like '%:undo' order by seq",
    );
    expect(rows).toEqual([
      { name: "a", state: "COMPENSATED" },
      { name: "b", state: "COMPENSATING" },
      { name: "c", state: "COMPENSATED" },
      { name: "d", state: "COMPENSATED" },
    ]);
  });

  it("is resumable: what was undone is not undone again, and no new write is taken", async () => {
    const p = provider();
    const [a, b] = [p.book("a"), p.book("b")];
    let die = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null), await step.run(b, null)] })),
        )
        .addNode(
          "undo",
          compensateNode({
            done: (report: SagaReport) => {
              if (die) throw new Error("dies after undoing");
              return { report };
            },
          }),
        )
        .addNode(
          "again",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null)] })),
        )
        .addEdge(START, "work")
        .addEdge("work", "undo")
        .addEdge("undo", "again")
        .addEdge("again", END),
      { ledger: db.openLedger(), operations: [a, b] },
    );
    await expect(graph.invoke({ go: "" }, thread("resumed"))).rejects.toThrow("dies after");
    die = false;
    await expect(graph.invoke(null, thread("resumed"))).rejects.toMatchObject({ code: "COMPENSATED" });
    expect(p.calls).toEqual(["a", "b", "undo b booked", "undo a booked"]);
  });
});

describe("compensation from an errorHandler", () => {
  it("undoes what the node and those before it did, once, and a resume after a crash finishes it", async () => {
    const p = provider();
    const [a, b] = [p.book("a"), p.book("b")];
    let die = true;
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "first",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null)] })),
        )
        .addNode(
          "second",
          durableNode(State, async (_s, { step }) => {
            await step.run(b, null);
            throw Object.assign(new Error("the hotel is full"), { status: 409 });
          }),
          { errorHandler: (_state, { error }) => new Command({ update: { log: [error.message] }, goto: "undo" }) },
        )
        .addNode(
          "undo",
          compensateNode({
            done: (report: SagaReport) => {
              if (die) throw new Error("dies after undoing");
              return { report };
            },
          }),
        )
        .addEdge(START, "first")
        .addEdge("first", "second")
        .addEdge("second", END)
        .addEdge("undo", END),
      { ledger: db.openLedger(), operations: [a, b] },
    );
    await expect(graph.invoke({ go: "" }, thread("handled"))).rejects.toThrow("dies after");
    die = false;
    const { log, report } = await graph.invoke(null, thread("handled"));
    expect(log).toEqual(["a booked", "the hotel is full"]);
    expect(report).toMatchObject({ complete: true, failed: [], notDeclared: [] });
    expect(p.calls).toEqual(["a", "b", "undo b booked", "undo a booked"]);
  });
});

describe("a compensation beside a write that is under way", () => {
  it("waits for its end, and undoes it too", async () => {
    const p = provider();
    let arrived: () => void = () => {};
    const atIt = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const ledger = db.openLedger();
    const database = await databaseOf(ledger);
    const closedThreads = async () =>
      (
        await database.query<{ thread_id: string }>(
          "closed",
          "select thread_id from {schema}.threads where closed_at is not null",
          [],
        )
      ).map((row) => row.thread_id);
    const slow = operation({
      ...p.book("slow"),
      run: async (_input: null) => {
        arrived();
        await vi.waitFor(async () => expect(await closedThreads()).toContain("beside"));
        return "slow booked";
      },
    });
    const undo = compensateNode({ done: (report: SagaReport) => ({ report }) });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(slow, null)] })),
        )
        .addNode("undo", async (state, config) => {
          await atIt;
          return undo(state, config);
        })
        .addEdge(START, "work")
        .addEdge(START, "undo")
        .addEdge("work", END)
        .addEdge("undo", END),
      { ledger, operations: [slow] },
    );
    const { report } = await graph.invoke({ go: "" }, thread("beside"));
    expect(report).toMatchObject({ complete: true, undone: [{ name: "slow" }] });
    expect(p.calls).toEqual(["undo slow booked"]);
  });

  it("whose undo's outcome is not known: says so on the first call, and stops there when told to", async () => {
    const p = provider();
    const [a] = [p.book("a")];
    const b = operation({
      ...p.book("b"),
      compensate: async () => {
        p.calls.push("undo b");
        throw lost();
      },
    });
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null), await step.run(b, null)] })),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger, operations: [a, b] },
    );
    await graph.invoke({ go: "" }, thread("unknown undo"));
    const request = { threadId: "unknown undo", onFailure: "stop" } as const;
    await expect(compensate(ledger, graph, request)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(p.calls).toEqual(["a", "b", "undo b"]);
  });
});

describe("a compensation that is asked for", () => {
  it("a second time while the first is at it is refused, and changes nothing", async () => {
    const p = provider();
    let letGo: () => void = () => {};
    const holding = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const a = operation({
      ...p.book("a"),
      compensate: async ({ receipt }) => {
        p.calls.push(`undo ${receipt}`);
        await holding;
      },
    });
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null)] })),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger, operations: [a] },
    );
    await graph.invoke({ go: "" }, thread("second"));
    const first = compensate(ledger, graph, { threadId: "second" });
    await expect.poll(() => p.calls).toEqual(["a", "undo a booked"]);
    await expect(compensate(db.openLedger(), graph, { threadId: "second" })).rejects.toMatchObject({
      code: "THREAD_BUSY",
    });
    await expect(graph.invoke({ go: "" }, thread("second"))).rejects.toThrow(/longhaul:.*busy/);
    letGo();
    expect(await first).toMatchObject({ complete: true, undone: [{ name: "a" }] });
    expect(p.calls).toEqual(["a", "undo a booked"]);
  });

  it("where nothing happened undoes nothing: no step, a step that failed, a thread that never was", async () => {
    const p = provider();
    const a = p.book("a");
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => {
            const refused = async (): Promise<string> => {
              throw Object.assign(new Error("no"), { status: 422 });
            };
            await step.run({ ...a, run: refused }, null).catch(() => undefined);
            return {};
          }),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger, operations: [a] },
    );
    await graph.invoke({ go: "" }, thread("nothing"));
    const nothing = { complete: true, undone: [], failed: [], notDeclared: [] };
    expect(await compensate(ledger, graph, { threadId: "nothing" })).toEqual(nothing);
    await expect(compensate(ledger, graph, { threadId: "never-was" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(p.calls).toEqual([]);
    expect(await db.sql("select 1 from longhaul.threads where thread_id = 'never-was'")).toEqual([]);
  });
});

describe("an undo that failed", () => {
  it("leaves the thread visibly failed, is done again when asked again, and then the thread is done", async () => {
    const p = provider();
    const [a, b] = [p.book("a"), p.book("b")];
    p.refusing.add("a");
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null), await step.run(b, null)] })),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger, operations: [a, b] },
    );
    await graph.invoke({ go: "" }, thread("again"));
    const stored = async () => (await db.sql("select state, error from longhaul.threads where thread_id = 'again'"))[0];
    expect(await compensate(ledger, graph, { threadId: "again" })).toMatchObject({
      complete: false,
      failed: [{ name: "a" }],
    });
    expect(await stored()).toMatchObject({
      state: "failed",
      error: { name: "CompensationIncomplete", message: "not undone: a" },
    });
    await expect(redrive(ledger, { threadId: "again", by: "ann" })).rejects.toMatchObject({ code: "COMPENSATED" });
    p.refusing.clear();
    expect(await compensate(ledger, graph, { threadId: "again" })).toMatchObject({ complete: true, failed: [] });
    expect(await stored()).toEqual({ state: "done", error: null });
    expect(p.calls.filter((call) => call.startsWith("undo"))).toEqual([
      "undo b booked",
      "undo a booked",
      "undo a booked",
    ]);
  });

  it("is not hidden by a graph that does not declare the operation: nothing is undone, and it says which", async () => {
    const p = provider();
    const [a, b] = [p.book("a"), p.book("b")];
    const ledger = db.openLedger();
    const builder = () =>
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(a, null), await step.run(b, null)] })),
        )
        .addNode("undo", compensateNode({ done: (report: SagaReport) => ({ report }) }))
        .addEdge(START, "work")
        .addEdge("work", "undo")
        .addEdge("undo", END);
    const forgetful = durableGraph(builder(), { ledger, operations: [b] });
    const refused = { code: "INVALID_OPTION", message: expect.stringContaining('"a"') };
    await expect(forgetful.invoke({ go: "" }, thread("forgot"))).rejects.toMatchObject(refused);
    await expect(compensate(ledger, forgetful, { threadId: "forgot" })).rejects.toMatchObject(refused);
    expect(p.calls).toEqual(["a", "b"]);
    // In doubt, it may have to be undone as well.
    await db.sql(
      "update longhaul.steps set state = 'NEEDS_RECONCILIATION', doubt_since = now() where thread_id = 'forgot' and name = 'a'",
    );
    await expect(compensate(ledger, forgetful, { threadId: "forgot" })).rejects.toMatchObject(refused);
    await db.sql(
      "update longhaul.steps set state = 'SUCCEEDED', doubt_since = null where thread_id = 'forgot' and name = 'a'",
    );
    const whole = durableGraph(builder(), { ledger, operations: [a, b] });
    expect((await whole.invoke(null, thread("forgot"))).report).toMatchObject({ complete: true });
    expect(p.calls).toEqual(["a", "b", "undo b booked", "undo a booked"]);
  });

  it("is no node without a function that takes the report", () => {
    expect(() => compensateNode({ done: "report" } as never)).toThrow(/done/);
    expect(() => compensateNode({ done: () => ({}), onFailure: "retry" } as never)).toThrow(/onFailure/);
    expect(() => reconcileNode({ settled: "steps" } as never)).toThrow(/settled/);
  });
});

describe("a reconcileNode", () => {
  it("settles by lookup what it can, and asks about the rest one by one, by id", async () => {
    const p = provider();
    const [a, b, c] = [p.book("a"), p.book("b", false), p.book("c", false)];
    for (const name of ["a", "b", "c"]) p.losing.add(name);
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => {
            const tries = [a, b, c].map((o) =>
              step.run({ ...o, onUnknown: "throw", lookup: async () => ({ outcome: "cannot-tell" }) }, null),
            );
            await Promise.allSettled(tries);
            return {};
          }),
        )
        .addNode(
          "reconcile",
          reconcileNode({ settled: (steps) => ({ log: steps.map((s) => `${s.name} ${s.outcome}`) }) }),
        )
        .addEdge(START, "work")
        .addEdge("work", "reconcile")
        .addEdge("reconcile", END),
      { ledger, operations: [a, b, c] },
    );
    await graph.invoke({ go: "" }, thread("reconcile"));
    const asked = async () => (await graph.getState(thread("reconcile"))).tasks.flatMap((task) => task.interrupts);
    expect((await asked()).map((i) => (i.value as { name: string }).name).sort()).toEqual(["a", "b", "c"]);
    for (const { value } of await asked()) {
      const { idempotencyKey, name } = value as { idempotencyKey: string; name: string };
      if (name !== "c") await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: name });
    }
    await graph.invoke(null, thread("reconcile"));
    const [left, ...others] = await asked();
    expect(others).toEqual([]);
    const idempotencyKey = keyOf(left);
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "write-off", reason: "nobody knows" });
    expect((await graph.invoke(null, thread("reconcile"))).log).toEqual([]);
    expect(p.calls.sort()).toEqual(["a", "b", "c"]);
  });

  it("stores the receipt that a registered lookup finds", async () => {
    const p = provider();
    const a = p.book("a");
    p.losing.add("a");
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => {
            // The closure knows no lookup; the declared operation does.
            await step.write("a", null, () => a.run(null, {} as never), { onUnknown: "throw" }).catch(() => undefined);
            return {};
          }),
        )
        .addNode(
          "reconcile",
          reconcileNode({ settled: (steps) => ({ log: steps.map((s) => `${s.name} ${s.outcome}`) }) }),
        )
        .addEdge(START, "work")
        .addEdge("work", "reconcile")
        .addEdge("reconcile", END),
      { ledger: db.openLedger(), operations: [a] },
    );
    expect((await graph.invoke({ go: "" }, thread("found"))).log).toEqual(["a happened"]);
    const [row] = await db.sql<{ output: Buffer }>("select output from longhaul.steps where thread_id = 'found'");
    expect(row?.output.toString()).toBe('"a found"');
  });
});

describe("work on a thread from outside its graph", () => {
  it("reconciles by lookup and compensates, by the effects that the graph declares", async () => {
    const p = provider();
    const [a, b] = [p.book("a"), p.book("b")];
    const ledger = db.openLedger();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => {
            await step.run(a, null);
            await step.write("b", null, async () => Promise.reject(lost()), { onUnknown: "throw" }).catch(() => {});
            return {};
          }),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger, operations: [a, b] },
    );
    await graph.invoke({ go: "" }, thread("outside"));
    expect(await reconcile(ledger, graph, { threadId: "outside" })).toMatchObject({
      settled: [{ name: "b", outcome: "happened" }],
      open: [],
    });
    const report = await compensate(ledger, graph, { threadId: "outside" });
    expect(report).toMatchObject({ complete: true, failed: [], notDeclared: [] });
    expect(p.calls).toEqual(["a", "undo b found", "undo a booked"]);
    expect(await compensate(ledger, graph, { threadId: "outside" })).toMatchObject({ complete: true });
    expect(p.calls).toHaveLength(3);
    await expect(compensate(ledger, {}, { threadId: "outside" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  it("DSE-09: keeps a second receipt as evidence, and shows the effect as happened twice until a person knows of it", async () => {
    const ledger = db.openLedger();
    let resolve: (receipt: string) => void = () => {};
    const promise = new Promise<string>((done) => {
      resolve = done;
    });
    const attempts: number[] = [];
    const pay = operation({
      name: "pay",
      version: "1.0.0",
      effect: "write",
      timeoutMs: 50,
      settleMs: 50,
      run: async (_input: null, { attempt }) => {
        attempts.push(attempt);
        return attempt === 1 ? promise : "second";
      },
      lookup: async () => ({ outcome: "did-not-happen" }),
    });
    const graph = durableGraph(
      new StateGraph(State)
        .addNode(
          "work",
          durableNode(State, async (_s, { step }) => ({ log: [await step.run(pay, null)] })),
        )
        .addEdge(START, "work")
        .addEdge("work", END),
      { ledger },
    );
    expect((await graph.invoke({ go: "" }, thread("twice"))).log).toEqual(["second"]);
    expect(attempts).toEqual([1, 2]);
    resolve("first, but late");
    const found = async () =>
      (await duplicateEffects(await databaseOf(ledger), 10)).map(({ name, attempt }) => ({ name, attempt }));
    await expect.poll(found).toEqual([{ name: "pay", attempt: 1 }]);
    const [row] = await db.sql<{ key: string }>(
      "select encode(key, 'hex') as key from longhaul.steps where thread_id = 'twice'",
    );
    const idempotencyKey = row?.key ?? "";
    expect(await settle(ledger, { idempotencyKey, by: "ann", outcome: "acknowledge" })).toMatchObject({
      result: "settled",
    });
    expect(await found()).toEqual([]);
  });
});
