// VER-01 (sdk-rust#443, langchain docs#3843): a step is renamed or inserted while a thread is asleep, and old results are matched to
// the wrong new step. Here by identity, never by order; what cannot be told apart waits for a person.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  approvalsOf,
  type DurableOptions,
  decide,
  durableGraph,
  durableNode,
  type Ledger,
  operation,
  type Step,
} from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const State = Annotation.Root({ log: Annotation<string> });
let calls: string[] = [];
beforeEach(() => {
  calls = [];
});

/** What a build does in its one node. */
type Build = (step: Step) => Promise<unknown>;

function graphOf(build: Build, options: Partial<DurableOptions> = {}) {
  return durableGraph(
    new StateGraph(State)
      .addNode(
        "work",
        durableNode(State, async (_state, { step }) => ({ log: JSON.stringify(await build(step)) })),
      )
      .addEdge(START, "work")
      .addEdge("work", END),
    { ledger, ...options },
  );
}

const does = (step: Step, name: string, input: unknown = { amount: 10 }) =>
  step.write(name, input, async () => {
    calls.push(name);
    return `${name} done`;
  });
const search = (step: Step) =>
  step.read("search", { q: "x" }, async () => {
    calls.push("search");
    return { hits: 3 };
  });
const dies = () => {
  throw new Error("the process is replaced");
};

async function stopped(id: string, build: Build): Promise<void> {
  await expect(graphOf(build).invoke({}, thread(id))).rejects.toThrow("replaced");
  calls = [];
}

const cards = (threadId: string) => approvalsOf(ledger, { threadId, status: "pending" });
async function say(threadId: string, choice?: string) {
  const [card] = await cards(threadId);
  const args = { ...(card?.args as object), ...(choice === undefined ? {} : { choice }) };
  return decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision: { status: "edited", args } });
}

describe("VER-01: a step of a sleeping thread", () => {
  it("VER-01: that is inserted runs, and what was recorded is given to its own step alone", async () => {
    await stopped("inserted", async (step) => [await search(step), dies()]);
    const v2: Build = async (step) => [await search(step), await does(step, "audit"), await does(step, "pay")];
    const { log } = await graphOf(v2).invoke(null, thread("inserted"));
    expect(calls).toEqual(["audit", "pay"]);
    expect(JSON.parse(log)).toEqual([{ hits: 3 }, "audit done", "pay done"]);
    expect(await cards("inserted")).toEqual([]);
  });

  it("VER-01: that changes places, or is removed, is not done again", async () => {
    await stopped("reordered", async (step) => [await does(step, "a"), await does(step, "b"), dies()]);
    const v2: Build = async (step) => [await does(step, "b"), await does(step, "a"), await does(step, "c")];
    const { log } = await graphOf(v2).invoke(null, thread("reordered"));
    expect(JSON.parse(log)).toEqual(["b done", "a done", "c done"]);
    expect(calls).toEqual(["c"]);
    await stopped("removed", async (step) => [await does(step, "a"), dies()]);
    await graphOf(search).invoke(null, thread("removed"));
    expect(calls).toEqual(["search"]);
  });

  it("VER-01: that is renamed is not done again under its new name: a person is shown both, with their hashes", async () => {
    await stopped("renamed", async (step) => [await does(step, "pay"), dies()]);
    const v3 = graphOf((step) => does(step, "charge"));
    await v3.invoke(null, thread("renamed"));
    expect(calls).toEqual([]);
    const [card] = await cards("renamed");
    expect(card).toMatchObject({ action: "make charge where pay was", node: "work" });
    const { inputHash, recorded, choice } = (card?.args ?? {}) as Record<string, unknown>;
    expect({ recorded, choice }).toEqual({ recorded: [{ step: "pay", inputHash }], choice: "is pay" });
    // Asked again it is the same question.
    await v3.invoke(null, thread("renamed"));
    expect(await cards("renamed")).toHaveLength(1);
    await say("renamed");
    expect(await v3.invoke(null, thread("renamed"))).toEqual({ log: '"pay done"' });
    expect(calls).toEqual([]);
  });

  it("VER-01: that is another one after all is done when a person says so", async () => {
    await stopped("new", async (step) => [await does(step, "pay"), dies()]);
    const v3 = graphOf((step) => does(step, "charge"));
    await v3.invoke(null, thread("new"));
    await say("new", "new");
    await v3.invoke(null, thread("new"));
    expect(calls).toEqual(["charge"]);
  });

  it("VER-01: whose rename is declared goes on without a question", async () => {
    await stopped("declared", async (step) => [await does(step, "pay"), dies()]);
    const v3 = graphOf((step) => does(step, "charge"), { renames: { pay: "charge" } });
    expect(await v3.invoke(null, thread("declared"))).toEqual({ log: '"pay done"' });
    expect(calls).toEqual([]);
    await v3.invoke({}, thread("declared, new thread"));
    expect(calls).toEqual(["charge"]);
  });

  it("VER-01: that nobody lets be made stops the run with the difference, and the old build still runs it", async () => {
    const v1: Build = async (step) => [await does(step, "pay"), dies()];
    await stopped("stopped", v1);
    const v3 = graphOf((step) => does(step, "charge"));
    await v3.invoke(null, thread("stopped"));
    await say("stopped", "abort");
    await expect(v3.invoke(null, thread("stopped"))).rejects.toMatchObject({
      code: "TOOL_DRIFT",
      message: expect.stringContaining('renames: { "pay": "charge" }'),
    });
    expect(calls).toEqual([]);
    const back = await graphOf((step) => does(step, "pay")).invoke(null, thread("stopped"));
    expect(back).toEqual({ log: '"pay done"' });
    expect(calls).toEqual([]);
  });

  it("VER-01: calls side by side are no rename, in whichever order a crash left them", async () => {
    await stopped("parallel", async (step) => {
      await does(step, "second");
      dies();
    });
    const both: Build = async (step) => {
      const late = search(step).then(() => does(step, "second"));
      return Promise.all([does(step, "first"), late]);
    };
    await graphOf(both).invoke(null, thread("parallel"));
    expect(calls).toEqual(["search", "first"]);
    expect(await cards("parallel")).toEqual([]);
  });

  it("VER-01: whose result has another shape is brought into it, or waits for a person", async () => {
    const found = (version: string, more: object = {}) =>
      operation({
        name: "find",
        version,
        effect: "read",
        run: async () => {
          calls.push(`find ${version}`);
          return version === "1.0.0" ? { hits: 3 } : { total: 3 };
        },
        ...more,
      });
    const v4 = found("2.0.0", {
      migrate: { output: (old: unknown) => ({ total: (old as { hits: number }).hits }) },
    });
    for (const id of ["shape", "shape, block"])
      await stopped(id, async (step) => [await step.run(found("1.0.0"), {}), dies()]);
    const graph = graphOf((step) => step.run(v4, {}));
    await graph.invoke(null, thread("shape"));
    expect((await cards("shape"))[0]?.args).toMatchObject({ tool: "find", from: "1.0.0", to: "2.0.0" });
    await say("shape", "migrate");
    expect(await graph.invoke(null, thread("shape"))).toEqual({ log: '{"total":3}' });
    await graph.invoke(null, thread("shape, block"));
    await say("shape, block", "abort");
    await expect(graph.invoke(null, thread("shape, block"))).rejects.toMatchObject({ code: "TOOL_DRIFT" });
    expect(calls).toEqual([]);
  });

  it("VER-01: renames that cannot be are refused when the graph is made", () => {
    for (const renames of [{ pay: "" }, { pay: 7 }, { pay: "charge", bill: "charge" }, ["pay"], null])
      expect(() => graphOf(search, { renames } as never)).toThrow(/renames/);
  });
});
