// SER-07: a late write brings a deleted thread back; deletes leave blobs behind.
import { type BaseCheckpointSaver, type Checkpoint, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deleteThread, openLedger } from "../../src/index.js";
import { sweep } from "../../src/worker/index.js";
import { createWorld, thread, type World } from "../checkpoint/harness.js";
import { type Letters, PERSON, runPatient } from "../retention/patientThread.js";
import { tablesSaying, tablesWith } from "../retention/tables.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const LOOP = { source: "loop", step: 1, parents: {} } as const;
const db = {
  sql: async <Row extends object>(text: string, values: unknown[] = []) =>
    (await world.database.pool.query(text, values)).rows as Row[],
};

function checkpoint(saver: BaseCheckpointSaver, value: string): Checkpoint {
  return {
    ...emptyCheckpoint(),
    id: uuid6(1),
    channel_values: { name: value },
    channel_versions: { name: saver.getNextVersion(undefined) },
  } as Checkpoint;
}

/** A thread with a checkpoint, deleted; then a write, a checkpoint after it and one of a subgraph, all of them late. */
async function lateWrites(saver: BaseCheckpointSaver, threadId: string) {
  const first = checkpoint(saver, PERSON);
  const base = await saver.put(thread(threadId), first, { ...LOOP, step: 0 }, first.channel_versions);
  await saver.deleteThread(threadId);
  const next = checkpoint(saver, PERSON);
  const late = await Promise.allSettled([
    saver.putWrites(base, [["name", PERSON]], "task-1"),
    saver.put(base, next, LOOP, next.channel_versions),
    saver.put(thread(threadId, { checkpoint_ns: "sub:1" }), next, LOOP, next.channel_versions),
  ]);
  return { late: late.map(({ status }) => status), tuple: await saver.getTuple(thread(threadId)) };
}

describe("SER-07: writes that come after their thread was deleted", () => {
  it("SER-07: bring it back on LangGraph's own saver (the fault that is mended here)", async () => {
    expect((await lateWrites(world.stock, "stock")).tuple).toBeDefined();
  });

  it("SER-07: are refused, and nothing of it is left", async () => {
    const { late, tuple } = await lateWrites(world.saver, "ours");
    expect([late, tuple]).toEqual([["rejected", "rejected", "rejected"], undefined]);
    expect(await tablesWith(db, "ours")).toEqual(["threads"]);
  });

  it("SER-07: do not keep a new thread of that id from being stored, writes before their checkpoint included", async () => {
    await lateWrites(world.saver, "new");
    const first = checkpoint(world.saver, "new");
    const config = { configurable: { thread_id: "new", checkpoint_ns: "", checkpoint_id: first.id } };
    await Promise.all([
      world.saver.put(thread("new"), first, { ...LOOP, step: 0 }, first.channel_versions),
      world.saver.putWrites(config, [["name", "x"]], "task-1"),
    ]);
    const tuple = await world.saver.getTuple(thread("new"));
    expect([tuple?.checkpoint.channel_values, tuple?.pendingWrites]).toEqual([
      { name: "new" },
      [["task-1", "name", "x"]],
    ]);
  });
});

it("SER-07: a thread deleted while a write is under way stays deleted; that it was made is kept, without a person's data", async () => {
  const ledger = openLedger({ url: world.url });
  const letters: Letters = { sent: [], keys: [] };
  const answers: unknown[] = [];
  letters.outcome = async () => {
    answers.push(await deleteThread(ledger, { threadId: "in-flight", by: "ann" }));
  };
  try {
    await expect(runPatient(ledger, letters, "in-flight")).rejects.toThrow(/cancelled/);
    expect(answers).toEqual([expect.objectContaining({ result: "waits", running: true })]);
    await expect.poll(async () => (await sweep(ledger))["deletions"]).toBe(1);
  } finally {
    await ledger.close();
  }
  expect(await db.sql("select name, state from longhaul.deleted_effects where thread_id = 'in-flight'")).toEqual([
    { name: "send", state: "SUCCEEDED" },
  ]);
  expect(await tablesWith(db, "in-flight")).toEqual(["deleted_effects", "threads"]);
  await db.sql("delete from longhaul.checkpoints where thread_id = 'stock'");
  await db.sql("delete from longhaul.checkpoint_blobs where thread_id = 'stock'");
  await db.sql("delete from longhaul.checkpoint_writes where thread_id = 'stock'");
  expect(await tablesSaying(db, PERSON)).toEqual([]);
});
