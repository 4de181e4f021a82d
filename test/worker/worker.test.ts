// A worker in this process: what is due runs, once, by its own graph, and nothing that goes wrong in a run ends the worker.
import { Annotation, interrupt, START, StateGraph } from "@langchain/langgraph";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { approvalNode, durableGraph, durableNode, type Ledger, type Step, startRun } from "../../src/index.js";
import {
  type RunningWorker,
  startWorker,
  sweep,
  type WorkerEvent,
  type WorkerOptions,
} from "../../src/worker/index.js";
import { deferred, oneNode, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let broken: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
  broken = await brokenSweeps();
});

const workers: RunningWorker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

function start(options: WorkerOptions) {
  const events: WorkerEvent[] = [];
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const worker = startWorker({ graceMs: 5_000, onEvent: (event) => events.push(event), onError, ...options });
  workers.push(worker);
  const of = (threadId: string) =>
    events.flatMap((event) => ("threadId" in event && event.threadId === threadId ? [event.type] : []));
  return { worker, events, errors, of };
}

const wake = (threadId: string, inMs = 0) =>
  db.sql(
    "insert into longhaul.wakes (thread_id, due_at, reason) values ($1, longhaul.ledger_now() + make_interval(secs => $2::float8 / 1000), 'test')",
    [threadId, inMs],
  );
const stateOf = async (threadId: string) =>
  (await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [threadId]))[0]?.state;
const later = () => Object.assign(new Error("slow down"), { status: 429, headers: { "retry-after": "3600" } });

const State = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
function named(ledger: Ledger, name: string, work: (step: Step) => Promise<string>) {
  const node = durableNode(State, async (_state, { step }) => ({ log: [await work(step)] }));
  return durableGraph(new StateGraph(State).addNode("work", node).addEdge(START, "work"), { ledger, name });
}

/** A database on which the sweep of approvals fails: nothing can expire, and something should. */
async function brokenSweeps(): Promise<TestDatabase> {
  const own = await testDatabase();
  const ask = approvalNode({ request: () => ({ action: "go", args: {} }), timeoutMs: 1, decided: () => ({}) });
  const builder = new StateGraph(State).addNode("ask", ask).addEdge(START, "ask");
  await durableGraph(builder, { ledger: own.openLedger() }).invoke({ log: [] }, thread("asks"));
  await own.sql("create function longhaul.break() returns trigger language plpgsql as $$ begin raise 'broken'; end $$");
  await own.sql(
    "create trigger break before update on longhaul.approvals for each row when (new.status = 'expired') execute function longhaul.break()",
  );
  return own;
}

describe("a worker", () => {
  it("runs a thread again when its retry is due, by the ledger's clock, and not before", async () => {
    const ledger = db.openLedger();
    let tries = 0;
    const graph = oneNode(ledger, (step) =>
      step.read("page", {}, async () => {
        if (++tries === 1) throw later();
        return "text";
      }),
    );
    await graph.invoke({ log: [] }, thread("later")).catch(() => undefined);
    const { of } = start({ ledger, graphs: graph, pollMs: 100 });
    await db.advance(3_590_000);
    await wake("marker", 0);
    await expect.poll(() => of("marker").includes("failed"), { timeout: 10_000 }).toBe(true);
    expect(of("later")).toEqual([]);
    await db.advance(20_000);
    await expect.poll(() => of("later"), { timeout: 10_000 }).toEqual(["woke", "done"]);
    expect(tries).toBe(2);
    expect((await graph.getState(thread("later"))).values.log).toEqual(["text"]);
    expect(await db.sql("select 1 from longhaul.wakes where thread_id = 'later'")).toEqual([]);
  });

  it("is woken by PostgreSQL's bell, long before its poll", async () => {
    const ledger = db.openLedger();
    const graph = named(ledger, "bell", async () => "done");
    await graph.invoke({ log: [] }, thread("rung"));
    const { of, events } = start({ ledger, graphs: graph, pollMs: 600_000 });
    await expect.poll(() => events.map(({ type }) => type), { timeout: 10_000 }).toContain("listening");
    await wake("rung");
    await expect.poll(() => of("rung"), { timeout: 5_000 }).toEqual(["woke", "done"]);
  });

  it("leaves the wake of a busy thread, and takes it as soon as that run has ended", async () => {
    const ledger = db.openLedger();
    const gate = deferred();
    const reached = deferred();
    let runs = 0;
    const graph = named(ledger, "busy", async () => {
      if (++runs === 1) {
        reached.resolve();
        await gate.promise;
        throw new Error("the first run fails");
      }
      return "ran";
    });
    const running = graph.invoke({ log: [] }, thread("busy")).catch(() => undefined);
    await reached.promise;
    await wake("busy");
    const { of } = start({ ledger, graphs: graph, pollMs: 200 });
    await expect.poll(() => of("busy"), { timeout: 10_000 }).toEqual(["woke", "busy"]);
    expect(await db.sql("select reason from longhaul.wakes where thread_id = 'busy'")).toEqual([{ reason: "test" }]);
    gate.resolve();
    await running;
    await expect.poll(() => of("busy"), { timeout: 3_000 }).toEqual(["woke", "busy", "woke", "done"]);
  });

  it("reports what fails and goes on with the others", async () => {
    const ledger = db.openLedger();
    const failing = named(ledger, "failing", async () => {
      throw new Error("broken");
    });
    const fine = named(ledger, "fine", async () => `${interrupt("go on?")}`);
    await failing.invoke({ log: [] }, thread("fails")).catch(() => undefined);
    await fine.invoke({ log: [] }, thread("asks"));
    const { of, events, errors } = start({ ledger, graphs: { failing, fine }, pollMs: 200 });
    await wake("fails");
    await wake("asks");
    await expect
      .poll(() => [of("fails"), of("asks")], { timeout: 10_000 })
      .toEqual([
        ["woke", "failed"],
        ["woke", "done"],
      ]);
    expect(events).toContainEqual({ type: "done", threadId: "asks", as: "waiting" });
    expect(errors.map(String)).toEqual([expect.stringContaining("broken")]);
  });

  it("picks the graph by the name that its thread is recorded under, and leaves and names the others", async () => {
    const ledger = db.openLedger();
    const ran: string[] = [];
    const graph = (name: string) =>
      named(ledger, name, async () => {
        ran.push(name);
        if (ran.length <= 3) throw new Error("the first runs fail");
        return name;
      });
    const [one, two, three] = [graph("one"), graph("two"), graph("three")];
    await one.invoke({ log: [] }, thread("of-one")).catch(() => undefined);
    await two.invoke({ log: [] }, thread("of-two")).catch(() => undefined);
    await three.invoke({ log: [] }, thread("of-three")).catch(() => undefined);
    for (const threadId of ["of-one", "of-two", "of-three"]) await wake(threadId, -5_000);
    const { of, events } = start({ ledger, graphs: { one, two }, pollMs: 200 });
    await expect
      .poll(() => [of("of-one"), of("of-two")], { timeout: 10_000 })
      .toEqual([
        ["woke", "done"],
        ["woke", "done"],
      ]);
    await expect
      .poll(() => events, { timeout: 10_000 })
      .toContainEqual({ type: "unknown-graph", threadId: "of-three", graph: "three" });
    expect(ran.slice(3).sort()).toEqual(["one", "two"]);
    expect(await db.sql("select reason from longhaul.wakes where thread_id = 'of-three'")).toHaveLength(1);
    await db.sql("delete from longhaul.wakes");
  });

  it("stops its runs between two supersteps, and another worker goes on at once", async () => {
    const ledger = db.openLedger();
    const reached = deferred();
    const gate = deferred();
    const ran: string[] = [];
    const node = (name: string) =>
      durableNode(State, async () => {
        ran.push(name);
        if (name === "a") {
          reached.resolve();
          await gate.promise;
        }
        return { log: [name] };
      });
    const graph = durableGraph(
      new StateGraph(State).addNode("a", node("a")).addNode("b", node("b")).addEdge(START, "a").addEdge("a", "b"),
      { ledger, name: "two nodes" },
    );
    // A thread whose run has died before its first node ended.
    await graph.updateState(thread("stopped"), { log: ["before"] }, "__start__");
    const first = start({ ledger, graphs: graph, pollMs: 200 });
    await wake("stopped");
    await reached.promise;
    const stopping = first.worker.stop();
    await expect.poll(() => db.sql("select reason from longhaul.wakes where thread_id = 'stopped'")).toHaveLength(1);
    gate.resolve();
    await stopping;
    expect(first.of("stopped")).toEqual(["woke", "left"]);
    expect([ran, await stateOf("stopped")]).toEqual([["a"], "due"]);
    const second = start({ ledger, graphs: graph, pollMs: 200 });
    await expect.poll(() => second.of("stopped"), { timeout: 10_000 }).toEqual(["woke", "done"]);
    expect(ran).toEqual(["a", "b"]);
  });

  it("outlives the loss of all its connections", async () => {
    const ledger = db.openLedger();
    const graph = named(ledger, "cut", async () => "done");
    for (const id of ["cut-1", "cut-2"]) await graph.invoke({ log: [] }, thread(id));
    const { of, events } = start({ ledger, graphs: graph, pollMs: 200 });
    await expect.poll(() => events.map(({ type }) => type), { timeout: 10_000 }).toContain("listening");
    await db.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'langgraph-longhaul'",
    );
    await wake("cut-1");
    await expect.poll(() => of("cut-1"), { timeout: 10_000 }).toEqual(["woke", "done"]);
    await wake("cut-2");
    await expect.poll(() => of("cut-2"), { timeout: 10_000 }).toEqual(["woke", "done"]);
  });

  it("wakes what is due also where a sweep always fails, and tells that", async () => {
    const ledger = broken.openLedger();
    const graph = oneNode(ledger, async () => "ran");
    await startRun(ledger, graph, { threadId: "unswept", input: { log: [] } });
    const [errors, done] = [new Set<string>(), [] as string[]];
    const worker = startWorker({
      ledger,
      graphs: graph,
      pollMs: 50,
      onEvent: (event) => event.type === "done" && done.push(event.threadId),
      onError: (error) => errors.add(String(error)),
    });
    await expect.poll(() => done, { timeout: 10_000 }).toEqual(["unswept"]);
    await expect.poll(() => [...errors]).toEqual([expect.stringContaining("broken")]);
    await worker.stop();
    // The sweeps after the broken one are done.
    await broken.sql(
      "insert into longhaul.threads (thread_id, epoch, lease_until, state, created_at, updated_at) values ('dead', 1, now() - interval '1 s', 'running', now(), now())",
    );
    await expect(sweep(ledger)).rejects.toThrow("broken");
    expect(await broken.sql("select reason from longhaul.wakes")).toEqual([{ reason: "its run died" }]);
  });

  it("that is stopped leaves no wake behind for a run that came to its end meanwhile", async () => {
    const ledger = db.openLedger();
    const [started, gate] = [deferred(), deferred()];
    const graph = oneNode(ledger, async () => {
      started.resolve();
      await gate.promise;
      throw new Error("it fails in the end");
    });
    await startRun(ledger, graph, { threadId: "ends", input: { log: [] } });
    const worker = startWorker({ ledger, graphs: graph, pollMs: 50, onError: () => {} });
    await started.promise;
    const stopping = worker.stop();
    await expect.poll(() => db.sql("select reason from longhaul.wakes where thread_id = 'ends'")).toHaveLength(1);
    gate.resolve();
    await stopping;
    expect(await db.sql("select state from longhaul.threads where thread_id = 'ends'")).toEqual([{ state: "failed" }]);
    expect(await db.sql("select reason from longhaul.wakes where thread_id = 'ends'")).toEqual([]);
  });

  it("refuses options that cannot be", () => {
    const ledger = db.openLedger();
    const graph = oneNode(ledger, async () => "x");
    expect(() => startWorker({ ledger } as never)).toThrow(/needs `graphs`/);
    expect(() => startWorker({ ledger, graphs: {} })).toThrow(/at least one/);
    expect(() => startWorker({ ledger, graphs: { one: {} as never } })).toThrow(
      /"one" to be one that durableGraph made/,
    );
    expect(() => startWorker({ ledger, graphs: graph, concurrency: 0 })).toThrow(/concurrency/);
    expect(() => startWorker({ ledger, graphs: graph, pollMs: 2 ** 31 })).toThrow(/pollMs/);
    expect(() => startWorker({ ledger, graphs: graph, polls: 1 } as never)).toThrow(/no option `polls`/);
    expect(() => startWorker({ ledger: db.openLedger(), graphs: graph })).toThrow(/another ledger/);
  });
});

describe("sweep", () => {
  it("makes a thread due whose run died, once for each run that dies, later each time", async () => {
    const ledger = db.openLedger();
    await sweep(ledger);
    const die = (epoch: number) =>
      db.sql(
        `insert into longhaul.threads as t (thread_id, epoch, lease_until, state, created_at, updated_at)
         values ('dead', $1, longhaul.ledger_now() - interval '1 s', 'running', now(), now())
         on conflict (thread_id) do update set epoch = $1, state = 'running'`,
        [epoch],
      );
    const dueInS = async () =>
      (
        await db.sql<{ s: number }>(
          "select round(extract(epoch from due_at - longhaul.ledger_now()))::int as s from longhaul.wakes where thread_id = 'dead' and reason = 'its run died'",
        )
      )[0]?.s;
    await die(1);
    expect(await sweep(ledger)).toMatchObject({ deadRuns: 1 });
    expect(await dueInS()).toBe(0);
    expect(await sweep(ledger)).toMatchObject({ deadRuns: 0 });
    const waits: unknown[] = [];
    for (let epoch = 2; epoch <= 9; epoch++) {
      await db.sql("delete from longhaul.wakes where thread_id = 'dead'");
      await die(epoch);
      await sweep(ledger);
      waits.push(await dueInS());
    }
    expect(waits).toEqual([1, 3, 7, 15, 31, 60, 60, 60]);
    await db.sql("delete from longhaul.wakes");
  });
});
