// The durability barrier: a step may start only on checkpoints that are stored.
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import { DurabilityBarrierError, LeaseLostError, UnserializableError } from "../../src/core/errors.js";
import { PooledDatabase, type PoolLike } from "../../src/postgres/pool.js";
import { createWorld, endLease, startRun, thread, type World } from "./harness.js";
import { SCHEMA } from "./openDatabase.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const LOOP = { source: "loop", step: 1, parents: {} } as const;
const DEADLINE_MS = 30_000;

async function run(threadId: string) {
  const held = await startRun(world, threadId);
  const saver = world.saver.forRun(held);
  await saver.getTuple(thread(threadId));
  world.sent.length = 0;
  return { held, saver };
}

describe("The barrier", () => {
  it("knows a checkpoint that was put or loaded without asking the database", async () => {
    const first = { ...emptyCheckpoint(), id: uuid6(0) };
    await world.saver.put(thread("known"), first, LOOP, {});
    const { saver } = await run("known");
    const second = { ...emptyCheckpoint(), id: uuid6(1) };
    await saver.put(thread("known", { checkpoint_id: first.id }), second, LOOP, {});
    await saver.awaitStored(
      "known",
      [
        ["", first.id],
        ["", second.id],
      ],
      DEADLINE_MS,
    );
    expect(world.sent).toEqual(["lh_run_put"]);
  });

  it("waits for a put that is under way", async () => {
    const { saver } = await run("pending");
    const next = { ...emptyCheckpoint(), id: uuid6(0) };
    let stored = false;
    const put = saver.put(thread("pending"), next, LOOP, {}).then(() => {
      stored = true;
    });
    await saver.awaitStored("pending", [["", next.id]], DEADLINE_MS);
    await put;
    expect([stored, await world.saver.getTuple(thread("pending"))]).toEqual([true, expect.objectContaining({})]);
  });

  it("waits for a put that is yet to come", async () => {
    const { saver } = await run("to-come");
    const next = { ...emptyCheckpoint(), id: uuid6(0) };
    const waiting = saver.awaitStored("to-come", [["", next.id]], DEADLINE_MS);
    await saver.put(thread("to-come"), next, LOOP, {});
    await expect(waiting).resolves.toBeUndefined();
  });

  it("asks the database for a checkpoint that somebody else stored", async () => {
    const first = { ...emptyCheckpoint(), id: uuid6(0) };
    await world.saver.put(thread("asked", { checkpoint_ns: "sub" }), first, LOOP, {});
    const { saver } = await run("asked");
    await saver.awaitStored("asked", [["sub", first.id]], DEADLINE_MS);
    await world.saver.awaitStored("asked", [["sub", first.id]], DEADLINE_MS);
    expect(world.sent).toEqual(["lh_stored", "lh_stored"]);
  });

  it("fails at once when the put it waits for is refused", async () => {
    const { held, saver } = await run("refused");
    await endLease(world, "refused");
    const next = { ...emptyCheckpoint(), id: uuid6(0) };
    const waiting = saver.awaitStored("refused", [["", next.id]], DEADLINE_MS);
    const refused = saver.put(thread("refused"), next, LOOP, {}).catch(() => undefined);
    const error = await waiting.catch((thrown: unknown) => thrown);
    await refused;
    expect(error).toBeInstanceOf(DurabilityBarrierError);
    expect((error as Error).cause).toBe(held.lost);
    expect(held.lost).toBeInstanceOf(LeaseLostError);
  });

  it("fails at once for what follows a put that could not be stored", async () => {
    const { held, saver } = await run("failed");
    const bad = { ...emptyCheckpoint(), id: "nul \0 in an id" };
    await expect(saver.put(thread("failed"), bad, LOOP, {})).rejects.toThrow();
    await expect(saver.awaitStored("failed", [["", uuid6(1)]], DEADLINE_MS)).rejects.toThrow(DurabilityBarrierError);
    expect(held.lost).toBeUndefined();
  });

  it("fails at once for a checkpoint that could not be serialised", async () => {
    const saver = world.saver.forRun(await startRun(world, "unserializable"));
    const bad = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: () => 1 }, channel_versions: { x: 1 } };
    await expect(saver.put(thread("unserializable"), bad, LOOP, { x: 1 })).rejects.toThrow(UnserializableError);
    const waiting = saver.awaitStored("unserializable", [["", bad.id]], DEADLINE_MS);
    await expect(waiting).rejects.toThrow(DurabilityBarrierError);
  });

  it("waits again once a node that was tried again has stored what failed before", async () => {
    let breaks = true;
    // The statement is carried out, and its answer never comes.
    const { pool } = world.database;
    const breaking: PoolLike = {
      query: async (query, values) => {
        const result = await pool.query(query, values);
        if (breaks && typeof query === "object" && query.name === "lh_run_put") throw new Error("no answer");
        return result;
      },
      connect: () => pool.connect(),
      end: () => pool.end(),
    };
    const database = new PooledDatabase(breaking, SCHEMA);
    const held = await startRun(world, "tried-again");
    const saver = new LedgerSaver(async () => database, SCHEMA).forRun(held);
    const [first, second] = [uuid6(0), uuid6(1)].map((id) => ({ ...emptyCheckpoint(), id }));
    if (first === undefined || second === undefined) throw new Error("unreachable");
    await saver.getTuple(thread("tried-again"));
    await expect(saver.put(thread("tried-again"), first, LOOP, {})).rejects.toThrow("no answer");
    await expect(saver.awaitStored("tried-again", [["", second.id]], DEADLINE_MS)).rejects.toThrow(
      /could not be stored/,
    );
    breaks = false;
    const loaded = await saver.getTuple(thread("tried-again"));
    await saver.put(loaded?.config ?? {}, second, LOOP, {});
    expect(held.lost).toBeUndefined();
    await saver.awaitStored(
      "tried-again",
      [
        ["", first.id],
        ["", second.id],
      ],
      DEADLINE_MS,
    );
    await expect(saver.awaitStored("tried-again", [["", uuid6(2)]], 1)).rejects.toThrow(/not stored within 1 ms/);
  });

  it("fails at its deadline, and says what may be the reason", async () => {
    const { saver } = await run("never");
    await expect(saver.awaitStored("never", [["", uuid6(0)]], 1)).rejects.toThrow(
      /not stored within 1 ms.*durability: "exit"/,
    );
    await expect(world.saver.awaitStored("never", [["", uuid6(0)]], 1)).rejects.toThrow(DurabilityBarrierError);
  });

  it("lets nothing pass once the run has lost its thread", async () => {
    const { held, saver } = await run("lost");
    const next = { ...emptyCheckpoint(), id: uuid6(0) };
    await saver.put(thread("lost"), next, LOOP, {});
    held.lose(new LeaseLostError("The lease ran out."));
    await expect(saver.awaitStored("lost", [["", next.id]], DEADLINE_MS)).rejects.toThrow(DurabilityBarrierError);
  });
});
