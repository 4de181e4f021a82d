// kill -9 before and after every statement of a prune and of a deletion, and the same once more: nothing is half removed.
import { afterAll, beforeAll, expect, it } from "vitest";
import { deleteThread, prune } from "../../src/index.js";
import { type Bundle, bundle } from "../support/bundle.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { inParallel, startNode } from "../support/script.js";
import { type Letters, PERSON, patients, runPatient, thread } from "./patientThread.js";
import { tablesWith } from "./tables.js";

let db: TestDatabase;
let script: Bundle;
beforeAll(async () => {
  [db, script] = await Promise.all([testDatabase(), bundle("test/retention/remover.child.ts")]);
});
afterAll(() => script.remove());

type What = "prune" | "delete";

function remove(what: What, threadId: string, kill?: { nth: number; at: "before" | "after" }) {
  return startNode([script.file, JSON.stringify({ url: db.url, what, thread: threadId, ...(kill && { kill }) })]).ended;
}

async function statements(what: What): Promise<number> {
  const letters: Letters = { sent: [], keys: [] };
  await runPatient(db.openLedger(), letters, `count ${what}`);
  const { lines, stderr } = await remove(what, `count ${what}`);
  expect(stderr).toBe("");
  return Number(lines[0]?.["sent"]);
}

it.each(["delete", "prune"] as const)(
  "a %s that is killed anywhere is done by the next one",
  async (what) => {
    const ledger = db.openLedger();
    const count = await statements(what);
    expect(count).toBeGreaterThan(8);
    const crashes = Array.from({ length: count }, (_, i) => i + 1).flatMap((nth) =>
      (["before", "after"] as const).map((at) => ({ nth, at, threadId: `${what} ${at} ${nth}` })),
    );
    const letters: Letters = { sent: [], keys: [] };
    for (const { threadId } of crashes) await runPatient(ledger, letters, threadId);
    const sent = letters.sent.length;
    const ended = await inParallel(crashes, 2, ({ nth, at, threadId }) => remove(what, threadId, { nth, at }));
    // A run differs by a statement from another: those past its end are no crashes.
    expect(ended.filter(({ signal }) => signal === "SIGKILL").length).toBeGreaterThan(2 * count - 4);
    for (const { threadId } of crashes) {
      const left = await tablesWith(db, threadId);
      if (what === "delete") {
        // All of it or nothing.
        expect([
          ["deleted_effects", "threads"],
          expect.arrayContaining(["checkpoints", "steps", "approvals"]),
        ]).toContainEqual(left);
        await deleteThread(ledger, { threadId, by: "ann" });
        expect(await tablesWith(db, threadId)).toEqual(["deleted_effects", "threads"]);
      } else {
        const graph = patients(ledger, letters);
        expect((await graph.getState(thread(threadId))).values["log"]).toEqual([PERSON, "may write", "sent"]);
        await prune(ledger, { threadId, keepLast: 1, olderThanMs: 0 });
        const [checkpoints] = await db.sql("select count(*)::int as n from longhaul.checkpoints where thread_id = $1", [
          threadId,
        ]);
        expect(checkpoints).toEqual({ n: 1 });
        expect((await graph.getState(thread(threadId))).values["log"]).toEqual([PERSON, "may write", "sent"]);
      }
    }
    expect(letters.sent.length).toBe(sent);
  },
  600_000,
);
