// Deleting a thread: final, complete, and never while something of it is in doubt (G25).
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { deleteThread, redrive, registerWebhook, removeWebhook, settle, startRun } from "../../src/index.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { sweep } from "../../src/worker/index.js";
import { SECRET } from "../notify/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { type Letters, PERSON, patients, runPatient, thread } from "./patientThread.js";
import { tablesSaying, tablesWith, threadTables } from "./tables.js";

let db: TestDatabase;
let ledger: OpenedLedger;
let letters: Letters;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});
beforeEach(() => {
  letters = { sent: [], keys: [] };
});

const byAnn = (threadId: string) => ({ threadId, by: "ann" });
const inDoubt = async (threadId: string) => {
  letters.outcome = () => Promise.reject(new Error("socket hang up"));
  await runPatient(ledger, letters, threadId);
  letters.outcome = undefined;
  const [step] = await db.sql<{ key: string }>(
    "select encode(key, 'hex') as key from longhaul.steps where thread_id = $1 and doubt_since is not null",
    [threadId],
  );
  return step?.key ?? "";
};

describe("a deleted thread", () => {
  beforeEach(() =>
    registerWebhook(ledger, { name: "pager", url: "https://example.com/hook", secret: SECRET, includeArgs: true }),
  );
  afterEach(() => removeWebhook(ledger, "pager"));

  it("leaves no row in any table but its tombstone and what is kept for audit, and no word of a person", async () => {
    await runPatient(ledger, letters, "whole");
    const before = await tablesWith(db, "whole");
    expect(before).toEqual(
      expect.arrayContaining([
        "approvals",
        "budgets",
        "checkpoint_writes",
        "checkpoints",
        "heads",
        "outbox",
        "starts",
        "steps",
        "thread_events",
        "threads",
      ]),
    );
    expect(await tablesSaying(db, PERSON)).not.toEqual([]);
    const answer = await deleteThread(ledger, byAnn("whole"));
    expect(answer).toEqual({
      result: "deleted",
      applied: true,
      running: false,
      inDoubt: [],
      effectsKept: 1,
      innerThreads: [],
    });
    expect(await tablesWith(db, "whole")).toEqual(["deleted_effects", "threads"]);
    expect(await tablesSaying(db, PERSON)).toEqual([]);
    expect(await db.sql("select name, state, attempt from longhaul.deleted_effects where thread_id = 'whole'")).toEqual(
      [{ name: "send", state: "SUCCEEDED", attempt: 1 }],
    );
    expect((await longhaul(db.url, "runs")).lines).toEqual([]);
  });
});

describe("every table that has rows of a thread", () => {
  it("is emptied of them by the deletion", async () => {
    const sent: string[] = [];
    const database = await databaseOf(ledger);
    const { transaction } = database;
    database.transaction = (work) =>
      transaction.call(database, (client) =>
        work({
          query: (text: string, values: unknown[]) => {
            sent.push(text);
            return client.query(text, values);
          },
        } as never),
      ) as never;
    try {
      await runPatient(ledger, letters, "statements");
      await deleteThread(ledger, byAnn("statements"));
    } finally {
      database.transaction = transaction;
    }
    const emptied = (table: string) => sent.some((text) => text.includes(`delete from "longhaul".${table} `));
    const kept = (await threadTables(db)).filter((table) => !emptied(table));
    expect(kept).toEqual(["deleted_effects", "threads"]);
  });
});

describe("a thread id that was deleted", () => {
  it("begins anew with new input, under new keys", async () => {
    await runPatient(ledger, letters, "again");
    await deleteThread(ledger, byAnn("again"));
    const graph = patients(ledger, letters);
    await graph.invoke({ name: "John Doe" }, thread("again"));
    const state = await graph.getState(thread("again"));
    expect(state.values).toEqual({ name: "John Doe", log: ["John Doe"] });
    await deleteThread(ledger, byAnn("again"));
    await runPatient(ledger, letters, "again", "another event");
    expect([letters.sent.length, new Set(letters.keys).size]).toEqual([2, 2]);
  });

  it("is not brought back by a run that was told to go on with it", async () => {
    await runPatient(ledger, letters, "no-ghost");
    await deleteThread(ledger, byAnn("no-ghost"));
    const graph = patients(ledger, letters);
    await expect(graph.invoke(null, thread("no-ghost"))).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining("deleted by ann"),
    });
    expect(await tablesWith(db, "no-ghost")).toEqual(["deleted_effects", "threads"]);
    expect((await longhaul(db.url, "runs")).lines).not.toContainEqual(
      expect.objectContaining({ threadId: "no-ghost" }),
    );
  });

  it("is not started again by the event that had started it", async () => {
    await runPatient(ledger, letters, "by-event");
    await deleteThread(ledger, byAnn("by-event"));
    const trigger = { source: "clinic", eventId: "event of by-event" };
    const again = await startRun(ledger, patients(ledger, letters), { input: { name: PERSON }, trigger });
    expect(again).toEqual({ threadId: "by-event", started: false });
    const other = { input: { name: "John Doe" }, threadId: "by-event" };
    expect(await startRun(ledger, patients(ledger, letters), other)).toEqual({ threadId: "by-event", started: true });
    expect((await patients(ledger, letters).invoke(null, thread("by-event"))).name).toBe("John Doe");
  });

  it("is told apart from one that never was, and from one that was deleted before", async () => {
    await expect(deleteThread(ledger, byAnn("never"))).rejects.toMatchObject({ code: "NOT_FOUND" });
    await runPatient(ledger, letters, "twice");
    await deleteThread(ledger, byAnn("twice"));
    expect(await deleteThread(ledger, byAnn("twice"))).toMatchObject({ result: "deleted", applied: false });
    await expect(deleteThread(ledger, { threadId: "twice", by: "" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe("a thread with a write in doubt", () => {
  it("waits, runs no more, and goes with the next sweep once the write is settled", async () => {
    const key = await inDoubt("doubt");
    expect(await deleteThread(ledger, byAnn("doubt"))).toMatchObject({ result: "waits", inDoubt: [key] });
    const graph = patients(ledger, letters);
    await expect(graph.invoke(null, thread("doubt"))).rejects.toMatchObject({ code: "CANCELLED" });
    await expect(graph.invoke({ name: "new" }, thread("doubt"))).rejects.toMatchObject({ code: "CANCELLED" });
    await expect(redrive(ledger, byAnn("doubt"))).rejects.toThrow(/being deleted/);
    await expect(ledger[LEDGER_PARTS].saver.deleteThread("doubt")).rejects.toMatchObject({ code: "THREAD_BUSY" });
    expect(await sweep(ledger)).toMatchObject({ deletions: 0 });
    await settle(ledger, { idempotencyKey: key, by: "ann", outcome: "happened", receipt: { to: PERSON } });
    expect(await sweep(ledger)).toMatchObject({ deletions: 1 });
    expect(await tablesWith(db, "doubt")).toEqual(["deleted_effects", "threads"]);
  });
});

describe("a thread that is being run", () => {
  it("is stopped first; what was sent is recorded, and is all that stays", async () => {
    let entered: () => void = () => {};
    const reached = new Promise<void>((resolve) => {
      entered = resolve;
    });
    let letGo: () => void = () => {};
    letters.outcome = () => {
      entered();
      return new Promise((resolve) => {
        letGo = resolve;
      });
    };
    const running = runPatient(ledger, letters, "running");
    await reached;
    expect(await deleteThread(ledger, byAnn("running"))).toMatchObject({ result: "waits", running: true });
    letGo();
    await expect(running).rejects.toThrow(/cancelled/);
    await expect.poll(async () => (await sweep(ledger))["deletions"]).toBe(1);
    expect(await tablesWith(db, "running")).toEqual(["deleted_effects", "threads"]);
    expect(await db.sql("select state from longhaul.deleted_effects where thread_id = 'running'")).toEqual([
      { state: "SUCCEEDED" },
    ]);
  });
});

describe("longhaul delete-thread", () => {
  it("says what it did, and by its exit code that it waits", async () => {
    await runPatient(ledger, letters, "by-command");
    const done = await longhaul(db.url, "delete-thread", "by-command", "--by", "ann");
    expect(done).toMatchObject({ code: 0, lines: [{ threadId: "by-command", result: "deleted", effectsKept: 1 }] });
    const key = await inDoubt("by-command-later");
    const waits = await longhaul(db.url, "delete-thread", "by-command-later", "--by", "ann");
    expect(waits).toMatchObject({ code: 3, lines: [{ result: "waits", inDoubt: [key] }] });
  });
});
