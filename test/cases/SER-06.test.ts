// SER-06: checkpoint tables grow with what is new, not with the square of the conversation; pruning keeps what a thread needs.
import { randomBytes } from "node:crypto";
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, expect, it } from "vitest";
import { durableGraph, type Ledger, prune } from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const STEPS = 200;
const CHARS = 2000;
const State = Annotation.Root({
  n: Annotation<number>,
  messages: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

/** The bytes of a thread's rows in every table that checkpoints are stored in. */
async function storedBytes(threadId: string): Promise<number> {
  const tables = ["checkpoints", "checkpoint_blobs", "checkpoint_writes", "elements"];
  let bytes = 0;
  for (const table of tables) {
    const [row] = await db.sql<{ bytes: string | null }>(
      `select sum(pg_column_size(t.*)) as bytes from longhaul.${table} t where t.thread_id = $1`,
      [threadId],
    );
    bytes += Number(row?.bytes ?? 0);
  }
  return bytes;
}

const graph = () =>
  durableGraph(
    new StateGraph(State)
      .addNode("talk", ({ n }) => ({ n: n + 1, messages: [randomBytes(CHARS / 2).toString("hex")] }))
      .addNode("ask", () => ({ messages: [interrupt<string, string>("Go on?")] }))
      .addEdge(START, "talk")
      .addConditionalEdges("talk", ({ n }) => (n < STEPS ? "talk" : "ask"), ["talk", "ask"])
      .addEdge("ask", END),
    { ledger },
  );

it("SER-06: 200 steps of 2 kB are stored in a small multiple of what is new, and a pruned thread goes on", async () => {
  const config = { ...thread("growing"), recursionLimit: STEPS + 10 };
  await graph().invoke({ n: 0 }, config);
  const bytes = await storedBytes("growing");
  // Each message once; what is beyond it are the checkpoints themselves, about a kilobyte a step.
  expect(bytes).toBeGreaterThan(STEPS * CHARS * 0.4);
  expect(bytes).toBeLessThan(STEPS * CHARS * 3);
  await prune(ledger, { threadId: "growing", keepLast: 3 });
  expect(await storedBytes("growing")).toBeLessThan(bytes);
  const [left] = await db.sql<{ n: number }>(
    "select count(*)::int as n from longhaul.checkpoints where thread_id = 'growing'",
  );
  expect(left?.n).toBeLessThanOrEqual(4);
  const { messages } = await graph().invoke(new Command({ resume: "yes" }), config);
  expect(messages).toHaveLength(STEPS + 1);
  expect(messages.at(-1)).toBe("yes");
  expect(messages.slice(0, STEPS).every((message) => message.length === CHARS)).toBe(true);
}, 60_000);
