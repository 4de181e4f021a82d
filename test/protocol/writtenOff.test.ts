// A write that a person gave up may have happened. A redrive of its thread must not send it again blindly.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { durableGraph, durableNode, redrive, settle } from "../../src/index.js";
import { testDatabase } from "../support/database.js";

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

it("a redrive does not send a written-off write again", async () => {
  const db = await testDatabase();
  const ledger = db.openLedger();
  let sent = 0;
  const builder = new StateGraph(State)
    .addNode(
      "work",
      durableNode(State, async (_, { step }) => {
        const pay = async (): Promise<string> => {
          sent++;
          throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
        };
        return { log: [await step.write("pay", { amount: 1 }, pay)] };
      }),
    )
    .addEdge(START, "work")
    .addEdge("work", END);
  const graph = durableGraph(builder, { ledger });
  const config = { configurable: { thread_id: "t" } };
  await graph.invoke({}, config);
  const [step] = await db.sql<{ key: string }>("select encode(key, 'hex') as key from longhaul.steps");
  const giveUp = { by: "ann", outcome: "write-off", reason: "never mind" } as const;
  expect(await settle(ledger, { idempotencyKey: step?.key ?? "", ...giveUp })).toMatchObject({ result: "settled" });
  await expect(graph.invoke(null, config)).rejects.toMatchObject({ errorCode: "WRITTEN_OFF" });
  await redrive(ledger, { threadId: "t", by: "bob" });
  await graph.invoke(null, config).catch(() => undefined);
  expect(sent).toBe(1);
});
