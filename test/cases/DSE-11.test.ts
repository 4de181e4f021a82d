import { tool } from "@langchain/core/tools";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { canonicalJson, sha256 } from "../../src/core/key.js";
import { durableGraph, durableNode, durableTool, type Ledger, type Step, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const thread = (thread_id: string) => ({ configurable: { thread_id } });
const hashOf = (amount: number) => sha256(canonicalJson({ amount }));

interface Question {
  readonly kind: string;
  readonly message: string;
  readonly idempotencyKey: string;
  readonly inputHash: string;
  readonly newInputHash: string;
}

/** A node that charges, and dies after the first charge. `order.amount` is what the model says to charge. */
function charging(charge: (step: Step, amount: number, send: (amount: number) => Promise<string>) => Promise<unknown>) {
  const order = { amount: 1212 };
  const sent: number[] = [];
  let dies = true;
  const send = async (amount: number) => {
    sent.push(amount);
    return `charged ${amount}`;
  };
  const builder = new StateGraph(State)
    .addNode(
      "charge",
      durableNode(State, async (_state, { step }) => {
        const receipt = await charge(step, order.amount, send);
        if (dies) {
          dies = false;
          throw new Error("the process dies");
        }
        return { log: [String(receipt)] };
      }),
    )
    .addEdge(START, "charge")
    .addEdge("charge", END);
  return { order, sent, graph: durableGraph(builder, { ledger }) };
}

type Charge = Parameters<typeof charging>[0];

const byStep: Charge = (step, amount, send) => step.write("charge", { amount }, () => send(amount));

/** The model emits the call again, with the id of before. */
const byTool: Charge = (_step, amount, send) => {
  const charge = tool(async (input: { amount: number }) => send(input.amount), {
    name: "charge",
    description: "Charges.",
    schema: z.object({ amount: z.number() }),
  });
  return durableTool(charge, { version: "1.0.0", effect: "write" })
    .invoke({ type: "tool_call", id: "call_1", name: "charge", args: { amount } })
    .then((message: { content: unknown }) => message.content);
};

/** Charges 1212, dies, and comes back with another amount. */
async function drift(id: string, charge: Charge, amount = 1213) {
  const world = charging(charge);
  await expect(world.graph.invoke({ log: [] }, thread(id))).rejects.toThrow("the process dies");
  world.order.amount = amount;
  const paused = await world.graph.invoke(null, thread(id));
  const state = await world.graph.getState(thread(id));
  const question = state.tasks[0]?.interrupts[0]?.value as Question;
  return { ...world, paused, question };
}

describe("DSE-11: the arguments of a step changed since it was first sent", () => {
  it.each([
    ["step.write", "step", byStep],
    ["a durable tool", "tool", byTool],
  ] as const)(
    "DSE-11: %s with other arguments is refused before sending, with both hashes",
    async (_what, id, charge) => {
      const { sent, paused, question } = await drift(id, charge);
      expect(question).toMatchObject({ kind: "INPUT_DRIFT", inputHash: hashOf(1212), newInputHash: hashOf(1213) });
      expect(question.message).toContain(hashOf(1212));
      expect(question.message).toContain(hashOf(1213));
      expect(question.message).toContain("Nothing was sent");
      expect(sent).toEqual([1212]);
      // The stored result is not the answer to the new arguments.
      expect(paused.log).toEqual([]);
    },
  );

  it("DSE-11: asks again and again, and never sends, until a person has decided", async () => {
    const { graph, sent, question } = await drift("again", byStep);
    for (let i = 0; i < 3; i++) expect(await graph.invoke(null, thread("again"))).toHaveProperty("__interrupt__");
    expect(sent).toEqual([1212]);
    const { lines } = await longhaul(db.url, "reconcile", "list");
    expect(lines).toContainEqual(
      expect.objectContaining({ key: question.idempotencyKey, question: "drift", newInputHash: hashOf(1213) }),
    );
  });

  it("DSE-11: `reconcile settle --keep` goes on with what is recorded, for this input alone", async () => {
    const { graph, order, sent, question } = await drift("keep", byStep);
    const settled = await longhaul(db.url, "reconcile", "settle", question.idempotencyKey, "--keep", "--by", "ann");
    expect(settled).toMatchObject({ code: 0, lines: [{ result: "settled", threadId: "keep" }] });
    order.amount = 1214;
    expect(await graph.invoke(null, thread("keep"))).toHaveProperty("__interrupt__");
    await settle(ledger, { idempotencyKey: question.idempotencyKey, by: "ann", outcome: "keep" });
    expect(await graph.invoke(null, thread("keep"))).toMatchObject({ log: ["charged 1212"] });
    expect(sent).toEqual([1212]);
  });

  it("DSE-11: `reconcile settle --fail` gives the node an error that says what differs", async () => {
    const { graph, sent, question } = await drift("fail", byStep);
    const settled = await longhaul(db.url, "reconcile", "settle", question.idempotencyKey, "--fail", "--by", "ann");
    expect(settled).toMatchObject({ code: 0, lines: [{ result: "settled", threadId: "fail" }] });
    await expect(graph.invoke(null, thread("fail"))).rejects.toMatchObject({ code: "INPUT_CONFLICT", status: 409 });
    expect(sent).toEqual([1212]);
  });

  it("DSE-11: goes on by itself when the first arguments come back", async () => {
    const { graph, order, sent } = await drift("back", byStep);
    order.amount = 1212;
    expect(await graph.invoke(null, thread("back"))).toMatchObject({ log: ["charged 1212"] });
    expect(sent).toEqual([1212]);
  });

  it("DSE-11: no longer asks a person when the first arguments came back and the thread is done", async () => {
    const { graph, order } = await drift("moot", byStep);
    order.amount = 1212;
    await graph.invoke(null, thread("moot"));
    const { lines } = await longhaul(db.url, "reconcile", "list");
    expect(lines.filter((line) => line["threadId"] === "moot")).toEqual([]);
  });
});
