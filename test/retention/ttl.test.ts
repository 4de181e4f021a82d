// How long threads are kept: counted from their end, and never while something is to be done.
import { beforeAll, describe, expect, it } from "vitest";
import type { Ledger } from "../../src/index.js";
import { sweep } from "../../src/worker/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type Letters, patients, runPatient, thread } from "./patientThread.js";
import { tablesWith } from "./tables.js";

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});

const DAY_MS = 24 * 3_600_000;
const keep30Days = { ttlMs: 30 * DAY_MS };

describe("a thread of a graph with a ttl", () => {
  it("is deleted when it has rested so long, and begins anew under its id", async () => {
    const letters: Letters = { sent: [], keys: [] };
    await runPatient(ledger, letters, "kept", "kept", keep30Days);
    await runPatient(ledger, letters, "for ever");
    await db.advance(29 * DAY_MS);
    await sweep(ledger);
    expect(await tablesWith(db, "kept")).toContain("checkpoints");
    // An activity begins the time anew.
    await patients(ledger, letters, keep30Days).updateState(thread("kept"), { log: ["note"] });
    await db.advance(29 * DAY_MS);
    await sweep(ledger);
    expect(await tablesWith(db, "kept")).toContain("checkpoints");
    await db.advance(2 * DAY_MS);
    expect(await sweep(ledger)).toMatchObject({ deletions: 1 });
    expect(await tablesWith(db, "kept")).toEqual(["deleted_effects", "threads"]);
    expect(await db.sql("select deleted_by from longhaul.threads where thread_id = 'kept'")).toEqual([
      { deleted_by: "system:ttl" },
    ]);
    expect(await tablesWith(db, "for ever")).toContain("checkpoints");
    const state = await patients(ledger, letters).invoke({ name: "John Doe" }, thread("kept"));
    expect(state.log).toEqual(["John Doe"]);
  });

  it("stays while it waits for a person, or a write of it is in doubt", async () => {
    const letters: Letters = { sent: [], keys: [] };
    await patients(ledger, letters, keep30Days).invoke({ name: "John Doe" }, thread("waits"));
    letters.outcome = () => Promise.reject(new Error("socket hang up"));
    await runPatient(ledger, letters, "doubt", "doubt", keep30Days);
    await db.advance(400 * DAY_MS);
    await sweep(ledger);
    expect(await tablesWith(db, "waits")).toContain("checkpoints");
    expect(await tablesWith(db, "doubt")).toContain("checkpoints");
  });

  it("is refused a time that is none", () => {
    for (const ttlMs of [0, -1, 1.5, Number.NaN, "30d"])
      expect(() => patients(ledger, { sent: [], keys: [] }, { ttlMs } as never)).toThrow(/ttlMs/);
  });
});
