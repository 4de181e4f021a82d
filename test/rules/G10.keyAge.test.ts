// G10: a write is sent again with its key only while the provider surely still knows it, counted from the first send
// that nothing has settled.
import { beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { oneNode, reset, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const HOUR_MS = 3_600_000;
const TIMEOUT_MS = 10_000;

/** Every send's answer is lost. The node gives up after each, so that time may pass before the next. */
function losing(ledger = db.openLedger()) {
  const sends: number[] = [];
  const graph = oneNode(ledger, async (step) => {
    return step.write(
      "pay",
      {},
      async (): Promise<string> => {
        sends.push(Date.now());
        // Asks for a pause that is longer than a run waits for, so the run ends as due.
        throw Object.assign(reset(), { headers: { "retry-after": "60" } });
      },
      { idempotent: true, keyLifetimeMs: HOUR_MS, timeoutMs: TIMEOUT_MS },
    );
  });
  const run = (id: string, input: { log: string[] } | null) =>
    graph.invoke(input, thread(id)).catch((error: unknown) => error);
  return { sends, run };
}

describe("G10: the age of the provider's key", () => {
  it("counts from the first unresolved send, however young the last attempt is", async () => {
    const { sends, run } = losing();
    await run("age", { log: [] });
    await db.advance(HOUR_MS / 2);
    await run("age", null);
    expect(sends).toHaveLength(2);
    // The last send is half an hour old, the first one an hour.
    await db.advance(HOUR_MS / 2);
    expect(await run("age", null)).toHaveProperty("__interrupt__");
    expect(sends).toHaveLength(2);
    expect(await stepsOf(db, "age")).toMatchObject([{ state: "NEEDS_RECONCILIATION", attempt: 2, doubt: true }]);
  });

  it("leaves room for the call itself and for a pause before it", async () => {
    const { sends, run } = losing();
    await run("margin", { log: [] });
    await db.advance(HOUR_MS - TIMEOUT_MS - 60_000);
    expect(await run("margin", null)).toHaveProperty("__interrupt__");
    expect(sends).toHaveLength(1);
  });
});
