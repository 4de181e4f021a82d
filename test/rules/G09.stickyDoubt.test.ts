// G9: while an attempt may have had its effect, no error and no cancel is a "no".
import { beforeAll, describe, expect, it } from "vitest";
import { settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { historyOf, oneNode, reset, status, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const YOUNG = { idempotent: true, keyLifetimeMs: 24 * 3_600_000 };

/** Pays, loses the answer, and is answered differently when it is sent again with the same key. */
function paying(answers: readonly Error[], ledger = db.openLedger()) {
  const keys: string[] = [];
  const graph = oneNode(ledger, (step) =>
    step.write(
      "pay",
      {},
      async ({ idempotencyKey }) => {
        keys.push(idempotencyKey);
        const error = answers[keys.length - 1];
        if (error !== undefined) throw error;
        return "paid";
      },
      YOUNG,
    ),
  );
  return { graph, keys, ledger };
}

describe("G9: doubt is sticky", () => {
  it.each([
    [401, "not allowed any more"],
    [409, "the first request with this key is still running"],
    [422, "refused"],
  ])("a %i on the resend (%s) says nothing about the first send: it is not a failure", async (code) => {
    const id = `resend-${code}`;
    const { graph, keys } = paying([reset(), status(code), status(code)]);
    const result = await graph.invoke({ log: [] }, thread(id));
    expect(result.log).toEqual(["paid"]);
    expect(new Set(keys).size).toBe(1);
    const history = await historyOf(db, id);
    expect(history).not.toContain("FAILED_PERMANENT");
    expect(history.slice(0, 4)).toEqual(["RUNNING", "NEEDS_RECONCILIATION", "RUNNING", "NEEDS_RECONCILIATION"]);
  });

  it("errors that are a plain no do not use up a write in doubt: after the last try a person is asked", async () => {
    const { graph, keys, ledger } = paying([reset(), ...Array.from({ length: 9 }, () => status(401))]);
    expect(await graph.invoke({ log: [] }, thread("worn out"))).toHaveProperty("__interrupt__");
    expect(keys).toHaveLength(5);
    expect(await stepsOf(db, "worn out")).toMatchObject([{ state: "NEEDS_RECONCILIATION", doubt: true }]);
    // Only evidence or a written reason ends it.
    const word = { idempotencyKey: keys[0] ?? "", by: "ann" };
    await expect(settle(ledger, { ...word, outcome: "write-off" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await settle(ledger, { ...word, outcome: "write-off", reason: "the provider is gone" });
    await expect(graph.invoke(null, thread("worn out"))).rejects.toMatchObject({ errorCode: "WRITTEN_OFF" });
    expect(await stepsOf(db, "worn out")).toMatchObject([{ state: "FAILED_PERMANENT", doubt: false }]);
  });

  it.each(["READY", "RETRY_SCHEDULED", "FAILED_PERMANENT", "CANCELLED", "SUCCEEDED"])(
    "the database itself refuses %s while the doubt stands",
    async (state) => {
      const graph = oneNode(db.openLedger(), (step) =>
        step.write("pay", {}, async (): Promise<string> => {
          throw reset();
        }),
      );
      const id = `check ${state}`;
      await graph.invoke({ log: [] }, thread(id));
      const move = "update longhaul.steps set state = $2, output = coalesce(output, '') where thread_id = $1";
      await expect(db.sql(move, [id, state])).rejects.toThrow(/doubt_is_sticky/);
    },
  );
});
