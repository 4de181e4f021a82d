import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { runScript } from "../support/script.js";
import { startWorld, type World } from "../support/world.js";
import { chargeLoop, SHAPES } from "./chargeLoop.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

const keysOf = async (thread: string) => {
  const rows = await db.sql<{ key: string }>(
    "select encode(key, 'hex') as key from longhaul.steps where thread_id = $1 order by seq",
    [thread],
  );
  return rows.map((row) => row.key);
};

describe("DSE-12: three equal charges of one run", () => {
  it.each(SHAPES)("DSE-12: %s: three charges under three keys, the same before and after a crash", async (shape) => {
    const crashed = await runScript("test/cases/chargeLoop.child.ts", [db.url, world.url, shape]);
    expect(crashed).toMatchObject({ signal: "SIGKILL", stderr: "" });
    const before = await keysOf(shape);
    expect(before).toHaveLength(2);
    const config = { configurable: { thread_id: shape } };
    const { keys } = await chargeLoop(db.openLedger(), world.url, shape).invoke(null, config);
    expect(new Set(keys).size).toBe(3);
    expect(await keysOf(shape)).toEqual(keys);
    expect(keys.slice(0, 2)).toEqual(before);
    const charges = world.paymentsOf(shape);
    expect(charges.map(({ key }) => key)).toEqual(keys);
    expect(charges.reduce((cents, { amount }) => cents + amount, 0)).toBe(3000);
  });
});
