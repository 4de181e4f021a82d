// Commands that take the project's own graph: its lookups and its undos are functions.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, runScript } from "../support/script.js";
import { startWorld, Withheld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const file = () => join(inject("scripts"), "test/cli/payingGraph.js");
const withGraph = (...argv: string[]) =>
  runScript("src/cli/main.ts", [...argv, "--graph", `${file()}:graph`, "--json", "--url", db.url], {
    WORLD_URL: world.url,
  });

/** Runs a thread whose payment happens, and whose answer is lost. */
async function payWithoutAnswer(threadId: string): Promise<void> {
  world.beforeAnswer = () => {
    throw new Withheld();
  };
  process.env["WORLD_URL"] = world.url;
  process.env["LONGHAUL_DATABASE_URL"] = db.url;
  const { graph } = (await import("./payingGraph.js")) as typeof import("./payingGraph.js");
  await graph.invoke({}, { configurable: { thread_id: threadId } });
}

describe("longhaul reconcile run", () => {
  it("asks the graph's lookups about every thread in doubt, and says what each has come to", async () => {
    await payWithoutAnswer("one");
    await payWithoutAnswer("two");
    expect((await longhaul(db.url, "reconcile", "list")).lines).toHaveLength(2);
    const { code, lines } = await withGraph("reconcile", "run");
    expect(code).toBe(0);
    expect(lines).toEqual(
      ["one", "two"].map((threadId) => ({
        threadId,
        settled: [{ name: "pay", idempotencyKey: expect.any(String), outcome: "happened" }],
        open: [],
      })),
    );
    expect((await longhaul(db.url, "reconcile", "list")).lines).toEqual([]);
    expect(world.payments).toHaveLength(2);
  });

  it("leaves open what the lookup cannot tell now, says when it is asked again, and ends with 1", async () => {
    await payWithoutAnswer("three");
    const { key } = world.payments.at(-1) ?? { key: "" };
    // The provider is gone: the lookup fails.
    const { code, lines } = await runScript(
      "src/cli/main.ts",
      ["reconcile", "run", "three", "--graph", `${file()}:graph`, "--json", "--url", db.url],
      { WORLD_URL: "http://127.0.0.1:1" },
    );
    expect(code).toBe(1);
    expect(lines).toMatchObject([
      { threadId: "three", settled: [], open: [{ key, name: "pay", dueAt: expect.any(String) }] },
    ]);
    expect((await longhaul(db.url, "reconcile", "list")).lines).toMatchObject([{ key, question: "outcome" }]);
  });

  it("says which thread, which file and which export it does not find", async () => {
    const unknown = await withGraph("reconcile", "run", "nobody");
    expect(unknown).toMatchObject({
      code: 1,
      lines: [{ error: "NOT_FOUND", message: expect.stringContaining("nobody") }],
    });
    const noExport = await runScript("src/cli/main.ts", [
      "reconcile",
      "run",
      "--graph",
      `${file()}:other`,
      "--json",
      "--url",
      db.url,
    ]);
    expect(noExport).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
    const noFile = await runScript("src/cli/main.ts", [
      "reconcile",
      "run",
      "--graph",
      "./nowhere.js",
      "--json",
      "--url",
      db.url,
    ]);
    expect(noFile.code).not.toBe(0);
    expect(JSON.stringify(noFile.lines)).toContain("nowhere.js");
  });
});

describe("longhaul compensate", () => {
  it("undoes what the thread did, once, and says so", async () => {
    const undone = { threadId: "one", complete: true, undone: [{ name: "pay" }], failed: [], notDeclared: [] };
    expect(await withGraph("compensate", "one")).toMatchObject({ code: 0, lines: [undone] });
    expect(await withGraph("compensate", "one")).toMatchObject({ code: 0, lines: [undone] });
    expect(world.count("refund", "one")).toBe(1);
    expect(await withGraph("compensate", "nobody")).toMatchObject({ code: 1, lines: [{ error: "NOT_FOUND" }] });
  });
});
