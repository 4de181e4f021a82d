// What `longhaul doctor` finds, on a database where it is so.
import { beforeAll, describe, expect, it } from "vitest";
import { sweep } from "../../src/worker/index.js";
import { oneNode, reset, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

/** The checks that went wrong, by name, and how the command ended. */
async function doctor(url: string) {
  const { code, lines } = await longhaul(url, "doctor");
  const wrong = Object.fromEntries(
    lines.filter((line) => line["ok"] !== true).map((line) => [line["check"], line["detail"]]),
  );
  return { code, wrong, checks: lines.map((line) => line["check"]) };
}

describe("longhaul doctor", () => {
  it("finds nothing wrong with a database that keeps its promises, and ends with 0", async () => {
    const found = await doctor(db.url);
    expect(found).toMatchObject({ code: 0, wrong: {} });
    expect(found.checks).toEqual(
      expect.arrayContaining(["server", "synchronous_commit", "fsync", "clocks", "ledger clock", "schema", "in doubt"]),
    );
  });

  it("says that intents can be lost when commits do not wait for the disk", async () => {
    const fresh = await testDatabase();
    await fresh.sql(`alter database ${new URL(fresh.url).pathname.slice(1)} set synchronous_commit = off`);
    const { code, wrong } = await doctor(fresh.url);
    expect(code).toBe(1);
    expect(wrong).toEqual({ synchronous_commit: expect.stringContaining("set it to on") });
  });

  it("names what waits for somebody: steps in doubt, and threads that are due and not run", async () => {
    const fresh = await testDatabase();
    const graph = oneNode(fresh.openLedger(), (step) =>
      step.write("pay", {}, async () => {
        throw reset();
      }),
    );
    await graph.invoke({ log: [] }, thread("card"));
    await fresh.sql(
      "insert into longhaul.wakes values ('slept-in', longhaul.ledger_now() - interval '61 s', 'retry'), ('just-due', longhaul.ledger_now() - interval '30 s', 'retry')",
    );
    const { code, wrong } = await doctor(fresh.url);
    expect(code).toBe(1);
    expect(Object.keys(wrong)).toEqual(["in doubt", "due threads", "sweeper"]);
    expect(wrong["sweeper"]).toMatch(/nobody ever swept.*longhaul worker/);
    expect(wrong["in doubt"]).toMatch(/^1 steps?; see longhaul reconcile list$/);
    expect(wrong["due threads"]).toContain("slept-in");
    expect(wrong["due threads"]).not.toContain("just-due");
  });

  it("says that something is due and nobody has swept for a minute, and is content when somebody has", async () => {
    const fresh = await testDatabase();
    const ledger = fresh.openLedger();
    await sweep(ledger);
    await fresh.sql("insert into longhaul.wakes values ('due', longhaul.ledger_now(), 'retry')");
    expect((await doctor(fresh.url)).wrong).toEqual({});
    await fresh.sql("update longhaul.sweeps set swept_at = swept_at - interval '2 minutes'");
    expect((await doctor(fresh.url)).wrong).toEqual({ sweeper: expect.stringMatching(/swept 12\d s ago/) });
    await fresh.sql("delete from longhaul.wakes");
    await fresh.sql(
      "insert into longhaul.threads (thread_id, lease_until, state, created_at, updated_at) values ('died', now() - interval '2 minutes', 'running', now(), now())",
    );
    const { wrong } = await doctor(fresh.url);
    expect([Object.keys(wrong), wrong["due threads"]]).toEqual([
      ["due threads", "sweeper"],
      expect.stringContaining("died"),
    ]);
    await sweep(ledger);
    expect((await doctor(fresh.url)).wrong).toEqual({});
  });

  it("says that the ledger's clock was moved", async () => {
    const fresh = await testDatabase();
    await fresh.advance(5_000);
    expect((await doctor(fresh.url)).wrong).toEqual({ "ledger clock": expect.stringContaining("5000 ms") });
  });

  it("says what to run on a database that has no ledger", async () => {
    const { code, lines } = await longhaul((await testDatabase({ empty: true })).url, "doctor");
    expect([code, lines]).toEqual([1, [{ error: "NOT_FOUND", message: expect.stringContaining("longhaul migrate") }]]);
  });

  it("says that a schema is behind, and one that is ahead is well where what is newer only adds", async () => {
    const behind = await testDatabase();
    await behind.sql("delete from longhaul.migrations where version = (select max(version) from longhaul.migrations)");
    const found = await doctor(behind.url);
    expect(found.code).toBe(1);
    expect(found.wrong["schema"]).toContain("bring it up to date: longhaul migrate");
    const ahead = await testDatabase();
    const add = "insert into longhaul.migrations (version, name, checksum, additive) values ($1, 'later', 'x', $2)";
    await ahead.sql(add, [9000, true]);
    expect(await doctor(ahead.url)).toMatchObject({ code: 0, wrong: {} });
    await ahead.sql(add, [9001, false]);
    expect((await doctor(ahead.url)).wrong).toHaveProperty("schema");
  });
});
