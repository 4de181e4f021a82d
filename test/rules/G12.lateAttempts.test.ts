// G12: no step starts once its attempt was given up or its run has ended; a second attempt joins the call that is open.
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { durable, durableGraph, durableNode, type LookupAnswer, type Step, type StepContext } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { deferred, later, oneNode, RETRY, reset, State, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

describe("G12: late attempts", () => {
  it("a second attempt joins the open call, and the attempt that was given up starts nothing more", async () => {
    const gate = deferred();
    const effects: string[] = [];
    const attempts: number[] = [];
    const ended: string[] = [];
    const graph = oneNode(
      db.openLedger(),
      async (step, { executionInfo }) => {
        const attempt = executionInfo?.nodeAttempt ?? 0;
        attempts.push(attempt);
        if (attempt === 2) gate.resolve();
        const first = await step.write("first", {}, async () => {
          effects.push("first");
          await gate.promise;
          return "1";
        });
        const next = step.write(`next of attempt ${attempt}`, {}, async () => {
          effects.push(`next of attempt ${attempt}`);
          return "2";
        });
        return `${first}${await next.finally(() => ended.push(`attempt ${attempt}`))}`;
      },
      { timeout: 1000, retryPolicy: { ...RETRY, maxAttempts: 4 } },
    );
    expect((await graph.invoke({ log: [] }, thread("joined"))).log).toEqual(["12"]);
    await expect.poll(() => [...ended].sort(), { timeout: 20_000 }).toEqual(["attempt 1", "attempt 2"]);
    expect(attempts).toEqual([1, 2]);
    expect(effects).toEqual(["first", "next of attempt 2"]);
    expect(await stepsOf(db, "joined")).toMatchObject([
      { name: "first", state: "SUCCEEDED", attempt: 1 },
      { name: "next of attempt 2", state: "SUCCEEDED", attempt: 1 },
    ]);
  });

  it("a second attempt that joined a call which its first attempt's timeout aborted looks it up: nothing is undone", async () => {
    const ran: string[] = [];
    const pay = durableNode(State, async (_state, { step }) => {
      const slow = async ({ signal }: StepContext): Promise<string> => {
        ran.push("sent");
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      };
      const lookup = async (): Promise<LookupAnswer<string>> => {
        ran.push("lookup");
        return { outcome: "happened", receipt: "po_1" };
      };
      return { log: [await step.write("pay", {}, slow, { lookup })] };
    });
    const builder = new StateGraph(State)
      .addNode("pay", pay, {
        timeout: 250,
        retryPolicy: RETRY,
        ends: ["undo"],
        errorHandler: () => {
          ran.push("errorHandler");
          return new Command({ goto: "undo" });
        },
      })
      .addNode("undo", async () => ({ log: ["undo"] }))
      .addEdge(START, "pay");
    const graph = durableGraph(builder, { ledger: db.openLedger() });
    expect((await graph.invoke({ log: [] }, thread("aborted call"))).log).toEqual(["po_1"]);
    expect(ran).toEqual(["sent", "lookup"]);
  });

  it("nothing starts after the run has ended", async () => {
    const gate = deferred();
    const done = deferred<unknown>();
    const effects: string[] = [];
    let kept: Step | undefined;
    const builder = new StateGraph(State)
      .addNode("node", async (_state, runtime) => {
        kept = durable(runtime).step;
        const { step } = durable(runtime);
        // Not awaited: its node returns, and no later run would ever come back to this place.
        const late = gate.promise.then(() => step.write("late", {}, async () => effects.push("late")));
        late.then(done.resolve, done.resolve);
        return { log: ["node"] };
      })
      .addEdge(START, "node")
      .addEdge("node", END);
    const graph = durableGraph(builder, { ledger: db.openLedger() });
    expect((await graph.invoke({ log: [] }, thread("ended"))).log).toEqual(["node"]);
    gate.resolve();
    expect(await done.promise).toMatchObject({
      code: "STEP_USAGE",
      message: expect.stringContaining("Await every step"),
    });
    await expect(kept?.read("later still", {}, async () => effects.push("read"))).rejects.toMatchObject({
      code: "STEP_USAGE",
    });
    expect(effects).toEqual([]);
    expect(await stepsOf(db, "ended")).toEqual([]);
  });

  it("a run that is aborted starts nothing more, and goes on with null afterwards", async () => {
    const controller = new AbortController();
    const effects: string[] = [];
    const graph = oneNode(db.openLedger(), async (step) => {
      const first = await step.write("first", {}, async () => {
        effects.push("first");
        controller.abort(new Error("stop"));
        return "1";
      });
      return first + (await step.write("second", {}, async () => String(effects.push("second"))));
    });
    await expect(graph.invoke({ log: [] }, { ...thread("stop"), signal: controller.signal })).rejects.toThrow();
    await expect.poll(async () => (await stepsOf(db, "stop")).map(({ state }) => state)).toEqual(["SUCCEEDED"]);
    expect(effects).toEqual(["first"]);
    await expect
      .poll(async () => (await graph.invoke(null, thread("stop")).catch(() => undefined))?.log)
      .toEqual(["12"]);
    expect(effects).toEqual(["first", "second"]);
  });

  it("a pause beside an open step is a pause: the node waits for the step, and the graph for a person", async () => {
    const gate = deferred();
    const effects: string[] = [];
    const graph = oneNode(db.openLedger(), (step) => {
      const unknown = step.write(
        "unknown",
        {},
        async (): Promise<string> => {
          throw reset();
        },
        { lookup: async () => ({ outcome: "cannot-tell" }) },
      );
      unknown.catch(() => gate.resolve());
      const open = step.write("open", {}, async () => {
        await gate.promise;
        await later(50);
        effects.push("open");
        return "1";
      });
      return Promise.all([unknown, open]);
    });
    const paused = await graph.invoke({ log: [] }, thread("beside"));
    expect(paused).toMatchObject({ __interrupt__: [{ value: { kind: "NEEDS_RECONCILIATION", name: "unknown" } }] });
    expect(effects).toEqual(["open"]);
    const states = (await stepsOf(db, "beside")).map(({ name, state }) => `${name} ${state}`).sort();
    expect(states).toEqual(["open SUCCEEDED", "unknown WAITING_HUMAN"]);
  });

  it("a failing sibling's run ends only when the other's call is settled", async () => {
    const Wide = Annotation.Root({ a: Annotation<string>, b: Annotation<string> });
    const gate = deferred();
    const effects: string[] = [];
    let fails = true;
    const graph = durableGraph(
      new StateGraph(Wide)
        .addNode("fails", async () => {
          if (!fails) return { a: "a" };
          await gate.promise;
          throw new Error("sibling");
        })
        .addNode(
          "pays",
          durableNode(Wide, async (_state, { step }) => ({
            b: await step.write("pay", {}, async () => {
              gate.resolve();
              await later(200);
              effects.push("pay");
              return "paid";
            }),
          })),
        )
        .addEdge(START, "fails")
        .addEdge(START, "pays")
        .addEdge("fails", END)
        .addEdge("pays", END),
      { ledger: db.openLedger() },
    );
    await expect(graph.invoke({ a: "" }, thread("sibling"))).rejects.toThrow("sibling");
    expect(effects).toEqual(["pay"]);
    expect(await stepsOf(db, "sibling")).toMatchObject([{ state: "SUCCEEDED" }]);
    fails = false;
    expect(await graph.invoke(null, thread("sibling"))).toEqual({ a: "a", b: "paid" });
    expect(effects).toEqual(["pay"]);
  });
});
