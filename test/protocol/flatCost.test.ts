// What one superstep reads must not depend on how long its thread already is.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import pg from "pg";
import { expect, it } from "vitest";
import { durableGraph, durableModel, durableNode, openLedger } from "../../src/index.js";
import { BenchModel } from "../bench/benchModel.js";
import { testDatabase } from "../support/database.js";

const PART = 100;
const STEPS = 3 * PART + 2;
const State = Annotation.Root({ i: Annotation<number> });
const ROWS_READ = `select sum(seq_tup_read + entries)::int as read from pg_stat_user_tables
  join (select relid, sum(idx_tup_read) as entries from pg_stat_user_indexes group by relid) indexes using (relid)
  where schemaname = 'longhaul'`;

it("A superstep late in a long thread reads as many rows as an early one", async () => {
  const db = await testDatabase();
  // One session, which can be made to hand in its counters.
  const pool = new pg.Pool({ connectionString: db.url, max: 1 });
  const rowsRead = async () => {
    await pool.query("select pg_stat_force_next_flush()");
    const { rows } = await pool.query(ROWS_READ);
    return rows[0].read as number;
  };
  const seen: number[] = [];
  const model = durableModel(new BenchModel({}));
  const builder = new StateGraph(State)
    .addNode(
      "step",
      durableNode(State, async ({ i }, { step }) => {
        if (i % PART === 1) seen.push(await rowsRead());
        await step.read("fetch", { i }, async () => i);
        await step.write("send", { i }, async () => i);
        await model.invoke(`Question ${i}`);
        return { i: i + 1 };
      }),
    )
    .addEdge(START, "step")
    .addConditionalEdges("step", ({ i }) => (i < STEPS ? "step" : END), ["step", END]);
  const ledger = openLedger({ pool });
  const config = { configurable: { thread_id: "long" }, recursionLimit: 2 * STEPS };
  await durableGraph(builder, { ledger }).invoke({ i: 0 }, config);
  const parts = seen.slice(1).map((read, part) => (read - (seen[part] ?? 0)) / PART);
  expect(parts).toHaveLength(3);
  // A read of every step of the thread would make the last part hundreds of rows a superstep dearer than the first.
  for (const part of parts) expect(part).toBeCloseTo(parts[0] ?? 0, 0);
  await ledger.close();
  await pool.end();
}, 60_000);
