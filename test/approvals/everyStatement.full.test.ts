// kill -9 before and after every statement of a thread that asks, is decided on, and does what was allowed.
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openLedger } from "../../src/index.js";
import { type Bundle, bundle } from "../support/bundle.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";
import { inParallel, startNode } from "../support/script.js";
import { SIGNED, signAll } from "./signer.js";

let db: TestDatabase;
let script: Bundle;
let pool: pg.Pool;
beforeAll(async () => {
  [db, script] = await Promise.all([testDatabase(), bundle("test/approvals/signer.child.ts")]);
  pool = new pg.Pool({ connectionString: db.url, max: 4 });
  await pool.query(SIGNED);
});
afterAll(async () => {
  await pool.end();
  await script.remove();
});

async function statements(): Promise<number> {
  let sent = 0;
  const listening = listeningPool(pool, (_name, send) => {
    sent++;
    return send();
  });
  await signAll(openLedger({ pool: listening }), pool, "undisturbed");
  return sent;
}

it("signs each contract once, asks for each once, and loses no decision", async () => {
  const count = await statements();
  expect(count).toBeGreaterThan(30);
  const crashes = Array.from({ length: count }, (_, i) => i + 1).flatMap((nth) =>
    (["before", "after"] as const).map((at) => ({ thread: `${at} ${nth}`, kill: { statement: "*", nth, at } })),
  );
  const ended = await inParallel(
    crashes,
    2,
    (crash) => startNode([script.file, JSON.stringify({ url: db.url, ...crash })]).ended,
  );
  expect(ended.map(({ stderr }) => stderr).find((text) => text !== "")).toBeUndefined();
  // A run differs by a statement or two from another: those past its end are no crashes.
  expect(ended.filter(({ signal }) => signal === "SIGKILL").length).toBeGreaterThan(2 * count - 12);
  const ledger = db.openLedger();
  for (const { thread } of crashes) {
    const decided = await db.sql(
      "select id, decided_at from longhaul.approvals where thread_id = $1 and status = 'approved' order by id",
      [thread],
    );
    expect(await signAll(ledger, pool, thread)).toEqual({ log: ["may sign", "first", "second"] });
    const rows = await db.sql<{ id: string; status: string; decided_at: Date }>(
      "select id, status, decided_at from longhaul.approvals where thread_id = $1 order by id",
      [thread],
    );
    expect({ thread, statuses: rows.map(({ status }) => status) }).toEqual({
      thread,
      statuses: ["approved", "approved"],
    });
    for (const { id, decided_at } of decided) expect(rows.find((row) => row.id === id)?.decided_at).toEqual(decided_at);
    const signed = await db.sql("select contract from signed where thread = $1 order by contract", [thread]);
    expect({ thread, signed }).toEqual({ thread, signed: [{ contract: "first" }, { contract: "second" }] });
  }
}, 600_000);
