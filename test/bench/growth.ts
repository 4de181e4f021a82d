// P5: an ordinary reducer channel that grows by 10 KB a step, 200 steps, with the ledger's checkpointer; stock beside it.
import { randomBytes } from "node:crypto";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { setupCheckpoints } from "../../src/checkpoint/index.js";
import { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import { migrate } from "../../src/postgres/migrate.js";
import { createPool, PooledDatabase } from "../../src/postgres/pool.js";
import { median } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import type { Server } from "./server.js";

const STEPS = 200;
const BYTES = 10_000;
const NEW_DATA = STEPS * BYTES;
const EDGE = 10;

const State = Annotation.Root({
  i: Annotation<number>,
  items: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

interface Grown {
  readonly walBytes: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly loadMs: number;
}

async function grow(server: Server, saver: BaseCheckpointSaver, threadId: string): Promise<Grown> {
  const at: number[] = [];
  const graph = new StateGraph(State)
    .addNode("add", ({ i }) => {
      at.push(performance.now());
      // Base64 text: as hard to compress as data gets.
      return { i: i + 1, items: [randomBytes((BYTES * 3) / 4).toString("base64")] };
    })
    .addEdge(START, "add")
    .addConditionalEdges("add", ({ i }) => (i < STEPS ? "add" : END), ["add", END])
    .compile({ checkpointer: saver });
  const config = { configurable: { thread_id: threadId }, durability: "sync" as const, recursionLimit: STEPS + 5 };
  const before = await server.counters();
  await graph.invoke({ i: 0 }, config);
  const after = await server.counters();
  const started = performance.now();
  const { values } = await graph.getState(config);
  const loadMs = performance.now() - started;
  if (values.items.length !== STEPS) throw new Error(`${values.items.length} of ${STEPS} items came back.`);
  const steps = at.slice(1).map((time, i) => time - (at[i] ?? time));
  return {
    walBytes: after.walBytes - before.walBytes,
    firstMs: median(steps.slice(0, EDGE)),
    lastMs: median(steps.slice(-EDGE)),
    loadMs,
  };
}

export async function growth(bench: BenchRun): Promise<Result[]> {
  if (!["P5.wal", "P5.flat", "P5.load"].some((id) => bench.wants(id))) return [];
  bench.note(`a channel that grows: ${STEPS} x ${BYTES / 1000} KB, ours ${bench.rounds} times, stock once`);
  const database = new PooledDatabase(createPool(await bench.server.createDatabase(), 4), "longhaul");
  const pool = new pg.Pool({ connectionString: await bench.server.createDatabase(), max: 4 });
  pool.on("error", () => {});
  try {
    await migrate(database);
    await setupCheckpoints(database, "longhaul");
    const stock = new PostgresSaver(pool);
    await stock.setup();
    const saver = new LedgerSaver(async () => database, "longhaul");
    await grow(bench.server, saver, "warm");
    const ours: Grown[] = [];
    for (let round = 0; round < bench.rounds; round++) ours.push(await grow(bench.server, saver, `round ${round}`));
    return resultsOf(bench, ours, await grow(bench.server, stock, "stock"));
  } finally {
    await database.pool.end();
    await pool.end();
  }
}

function resultsOf(bench: BenchRun, ours: readonly Grown[], stock: Grown): Result[] {
  const of = (pick: (grown: Grown) => number) => median(ours.map(pick));
  const shared = { rounds: bench.rounds, slices: ours.length };
  const line = (
    id: string,
    what: string,
    unit: string,
    mine: number,
    reference: number,
    target: number,
    against: string,
  ) => {
    const ratio = mine / reference;
    const pass = ratio <= target;
    const ratioQuartiles = [ratio, ratio] as const;
    return {
      id,
      what,
      unit,
      ours: mine,
      reference,
      against,
      ratio,
      target,
      targetOf: "ratio" as const,
      pass,
      ratioQuartiles,
      ...shared,
    };
  };
  const wal = line(
    "P5.wal",
    "200 x 10 KB on a reducer channel",
    "KB",
    of(({ walBytes }) => walBytes) / 1000,
    NEW_DATA / 1000,
    1.5,
    "the new data",
  );
  const flat = line(
    "P5.flat",
    "its last 10 steps against its first 10",
    "ms/step",
    of(({ lastMs }) => lastMs),
    of(({ firstMs }) => firstMs),
    1.3,
    "the first 10 steps",
  );
  const load = line(
    "P5.load",
    "getState of those 2 MB",
    "ms",
    of(({ loadMs }) => loadMs),
    200,
    1,
    "200 ms",
  );
  return [
    {
      ...wal,
      walBytesPerStep: of(({ walBytes }) => walBytes) / STEPS,
      referenceWalBytesPerStep: stock.walBytes / STEPS,
    },
    flat,
    load,
  ].filter(({ id }) => bench.wants(id));
}
