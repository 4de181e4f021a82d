// G7: with a saver that is not ours, a zombie's checkpoint can become the newest one. The ledger's own rules hold all the
// same: one run at a time, the barrier, recorded steps, and a person is asked about a write like one that was done (G6).
// The frontier notices such a checkpoint by where it stands.
import { Annotation, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { drainReason, durableGraph, durableNode } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { deferred, thread } from "./harness.js";

let db: TestDatabase;
let stock: PostgresSaver;
beforeAll(async () => {
  vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  db = await testDatabase();
  stock = PostgresSaver.fromConnString(db.url, { schema: "stock" });
  await stock.setup();
});
afterAll(() => stock.end());

const SAVERS: readonly [string, () => BaseCheckpointSaver][] = [
  ["a plain PostgresSaver", () => stock],
  ["a MemorySaver", () => new MemorySaver()],
];

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

/** look, pay: `during` is called inside a node; `input` is what is paid with. */
function paying(
  checkpointer: BaseCheckpointSaver,
  sent: string[],
  during: (node: string) => Promise<void> | void,
  input: () => object = () => ({}),
) {
  const builder = new StateGraph(State)
    .addNode("look", async () => {
      await during("look");
      return { log: ["look"] };
    })
    .addNode(
      "pay",
      durableNode(State, async (_state, { step, executionInfo }) => {
        const paid = await step.write("pay", input(), async ({ idempotencyKey }) => {
          await during(executionInfo?.checkpointId ?? "");
          sent.push(idempotencyKey);
          return "paid";
        });
        await during("pay");
        return { log: [paid] };
      }),
    )
    .addEdge(START, "look")
    .addEdge("look", "pay");
  return durableGraph(builder.compile({ checkpointer }), { ledger: db.openLedger() });
}

describe.each(SAVERS)("G7: with %s", (what, make) => {
  it("a node that failed after its write is gone on with, and the write is replayed", async () => {
    const sent: string[] = [];
    let fails = true;
    const graph = paying(make(), sent, (node) => {
      if (node === "pay" && fails) throw new Error("dies");
    });
    await expect(graph.invoke({ log: [] }, thread(`fails ${what}`))).rejects.toThrow("dies");
    fails = false;
    expect((await graph.invoke(null, thread(`fails ${what}`))).log).toEqual(["look", "paid"]);
    expect(sent).toHaveLength(1);
  });

  it("a write waits until its base is stored, whatever the durability", async () => {
    const saver = make();
    const stored: boolean[] = [];
    const graph = paying(saver, [], async (node) => {
      if (node === "look" || node === "pay") return;
      const configurable = { thread_id: `base ${what}`, checkpoint_ns: "", checkpoint_id: node };
      stored.push((await saver.getTuple({ configurable })) !== undefined);
    });
    await graph.invoke({ log: [] }, { ...thread(`base ${what}`), durability: "async" });
    expect(stored).toEqual([true]);
  });

  it("a second run on a live thread ends before any node", async () => {
    const saver = make();
    const reached = deferred();
    const gate = deferred();
    const ran: string[] = [];
    const first = paying(saver, [], async (node) => {
      if (node !== "look") return;
      reached.resolve();
      await gate.promise;
    }).invoke({ log: [] }, thread(`busy ${what}`));
    await reached.promise;
    const second = paying(saver, [], (node) => void ran.push(node));
    expect(await second.invoke(null, thread(`busy ${what}`)).catch(drainReason)).toMatchObject({ kind: "busy" });
    gate.resolve();
    await first;
    expect(ran).toEqual([]);
  });

  /** A run that is overtaken without knowing it, as a process that was paused; its checkpoint becomes the newest one. */
  async function zombified(id: string, input: () => object) {
    const saver = make();
    const sent: string[] = [];
    const reached = deferred();
    const gate = deferred();
    const zombie = paying(saver, sent, async (node) => {
      if (node !== "look") return;
      reached.resolve();
      await gate.promise;
    }).invoke({ log: [] }, thread(id));
    await reached.promise;
    await db.sql("update longhaul.threads set lease_until = '-infinity' where thread_id = $1", [id]);
    const next = paying(saver, sent, () => {}, input);
    expect((await next.invoke(null, thread(id))).log).toEqual(["look", "paid"]);
    gate.resolve();
    // It may not claim, but its checkpoint is stored: the base of its own payment.
    expect(await zombie.catch(drainReason)).toMatchObject({ kind: "lost" });
    expect((await next.getState(thread(id))).next).toEqual(["pay"]);
    return { next, sent };
  }

  it("a write on a zombie's checkpoint that is like one that was done waits for a person", async () => {
    const id = `zombie ${what}`;
    const { next, sent } = await zombified(id, () => ({}));
    expect(await next.invoke(null, thread(id))).toHaveProperty("__interrupt__");
    expect(sent).toHaveLength(1);
  });

  it("a write on a zombie's checkpoint waits for a person, whatever its input", async () => {
    const id = `zombie with another input ${what}`;
    let looked = 0;
    const { next, sent } = await zombified(id, () => ({ looked: ++looked }));
    expect(await next.invoke(null, thread(id))).toHaveProperty("__interrupt__");
    expect(sent).toHaveLength(1);
  });
});
