// Failures that cannot be read, options that cannot be, and answers that make no sense: the outcome is recorded all the same.
import { beforeAll, describe, expect, it } from "vitest";
import { recordFailure } from "../../src/core/failure.js";
import { drainReason, operation, settle } from "../../src/index.js";
import { oneNode, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

const trap = () => {
  throw new TypeError("no");
};
const throwing = (name: string, more: object = {}) =>
  Object.defineProperty(Object.assign(new Error("odd"), more), name, { get: trap });
const DAY = 24 * 3_600_000;

describe("an error that cannot be read", () => {
  const ERRORS: Record<string, () => unknown> = {
    "in its headers": () => throwing("headers"),
    "in its headers, with status 429": () => throwing("headers", { status: 429 }),
    "in what its headers say": () => Object.assign(new Error("odd"), { status: 429, headers: { get: trap } }),
    "in its response": () => throwing("response"),
    "in its cause": () => throwing("cause"),
    "in its errors": () => throwing("errors"),
    "in LangGraph's mark": () => throwing("is_bubble_up"),
    "at all": () => new Proxy(new Error("odd"), { get: trap, has: trap, getPrototypeOf: trap }),
  };
  it.each(
    Object.keys(ERRORS).flatMap((where) => [
      [where, false],
      [where, true],
    ]),
  )("%s leaves no write running (idempotent: %s)", async (where, idempotent) => {
    const id = `${where} ${idempotent}`;
    let sent = 0;
    const keys = new Set<string>();
    const options = idempotent ? { idempotent: true, keyLifetimeMs: DAY } : {};
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        {},
        async ({ idempotencyKey }) => {
          keys.add(idempotencyKey);
          if (++sent === 1) throw ERRORS[String(where)]?.();
          return "paid";
        },
        options,
      ),
    );
    await graph.invoke({ log: [] }, thread(id)).catch((error: unknown) => drainReason(error));
    const [row] = await stepsOf(db, id);
    expect(["SUCCEEDED", "NEEDS_RECONCILIATION"]).toContain(row?.state);
    expect(keys.size).toBe(1);
    expect(sent).toBe(row?.state === "SUCCEEDED" ? 2 : 1);
  });

  it("or is megabytes of a provider's text, does not keep the process busy", () => {
    const startedMs = performance.now();
    for (const text of ["-eyJ", "://:", "a", "Bearer "]) recordFailure(new Error(text.repeat(500_000)));
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });
});

describe("options that cannot be are refused by name", () => {
  it.each<[string, object, RegExp]>([
    ["retry", { retry: 5 }, /`retry`/],
    ["retry", { retry: null }, /`retry`/],
    ["retry", { retry: { max: 3 } }, /`max`/],
    ["idempotent", { idempotent: "yes", keyLifetimeMs: DAY }, /`idempotent`/],
    ["breaker", { breaker: null }, /`breaker`/],
    ["breaker", { breaker: { threshold: 2 ** 40, cooldownMs: 1 } }, /threshold/],
    ["breaker", { breaker: { threshold: 1, cooldownMs: 1, tenant: "me" } }, /tenant/],
  ])("%s %j", (_name, options, message) => {
    const make = () => operation({ name: "pay", version: "1.0.0", effect: "write", run: async () => 1, ...options });
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringMatching(message) }));
  });

  it("a step's name that an undo would have", async () => {
    const graph = oneNode(db.openLedger(), (step) => step.write("pay:undo", {}, async () => "done"));
    await expect(graph.invoke({ log: [] }, thread("named"))).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe("a breaker of a tenant with a long name", () => {
  it("keeps the outcome of the call, and no name", async () => {
    const tenant = "ann@example.com ".repeat(4000);
    const graph = oneNode(db.openLedger(), (step) =>
      step.write(
        "pay",
        {},
        async () => {
          throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        },
        { breaker: { threshold: 1, cooldownMs: 1000, tenant: () => tenant }, retry: { failures: 1 } },
      ),
    );
    await expect(graph.invoke({ log: [] }, thread("tenant"))).rejects.toMatchObject({ code: "STEP_FAILED" });
    const rows = await db.sql<{ name: string }>("select name from longhaul.breakers");
    expect(rows).toHaveLength(1);
    expect(rows[0]?.name).not.toContain("ann");
  });
});

describe("a lookup that found the effect", () => {
  it("with a receipt that cannot be stored: nobody can say then that it did not happen", async () => {
    const ledger = db.openLedger();
    let sent = 0;
    const graph = oneNode(ledger, (step) =>
      step.write(
        "pay",
        {},
        async (): Promise<unknown> => {
          sent++;
          throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
        },
        { lookup: async () => ({ outcome: "happened", receipt: () => 1 }), settleMs: 1 },
      ),
    );
    const paused = await graph.invoke({ log: [] }, thread("unstorable"));
    expect(paused).toMatchObject({ __interrupt__: [{ value: { message: expect.stringContaining("happened, but") } }] });
    const idempotencyKey = (await stepsOf(db, "unstorable"))[0]?.key ?? "";
    await db.advance(60_000);
    const no = settle(ledger, { idempotencyKey, by: "ann", outcome: "did-not-happen" });
    await expect(no).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "po_1" });
    expect((await graph.invoke(null, thread("unstorable"))).log).toEqual(["po_1"]);
    expect(sent).toBe(1);
  });
});
