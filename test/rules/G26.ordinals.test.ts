// G26: ordinals belong to one attempt at a node, and one name may be open once.
import { beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { later, oneNode, RETRY, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

describe("G26: ordinals", () => {
  it("start again when a retryPolicy retries the node: equal writes keep their keys", async () => {
    const keys: string[] = [];
    const graph = oneNode(
      db.openLedger(),
      async (step, { executionInfo }) => {
        const pay = () =>
          step.write("pay", { amount: 1 }, async ({ idempotencyKey }) => String(keys.push(idempotencyKey)));
        const receipts = [await pay(), await pay()];
        if (executionInfo?.nodeAttempt === 1) throw new Error("dies after its writes");
        return receipts.join(" ");
      },
      { retryPolicy: RETRY },
    );
    expect((await graph.invoke({ log: [] }, thread("retried"))).log).toEqual(["1 2"]);
    expect(new Set(keys).size).toBe(2);
    expect(keys).toHaveLength(2);
  });

  it("two calls of one name that are open at once are refused on the first run, before the second is sent", async () => {
    const sent: string[] = [];
    const graph = oneNode(db.openLedger(), (step) =>
      Promise.all(
        ["x", "y"].map((item) =>
          step.write("pay", { item }, async () => {
            sent.push(item);
            return item;
          }),
        ),
      ),
    );
    await expect(graph.invoke({ log: [] }, thread("twins"))).rejects.toMatchObject({
      code: "STEP_USAGE",
      status: 400,
      message: expect.stringContaining("Give each its own `key`"),
    });
    expect(sent).not.toContain("y");
  });

  it.each<[string, boolean, string[] | undefined]>([
    ["without keys: a person is asked, and nothing is sent again", false, undefined],
    ["with keys: each branch replays its own", true, ["x y"]],
  ])("branches of a Promise.all that change places after a crash, %s", async (what, keyed, log) => {
    const sent: string[] = [];
    // On the first run y is faster; on the replay, where the reads come from the record, x is first.
    const delays: Record<string, number> = { x: 150, y: 0 };
    let dies = true;
    const graph = oneNode(db.openLedger(), async (step) => {
      const receipts = await Promise.all(
        ["x", "y"].map(async (item) => {
          await step.read(`stock of ${item}`, {}, async () => later(delays[item] ?? 0).then(() => 1));
          if (!dies && item === "y") await later(50);
          const options = keyed ? { key: item } : {};
          const send = async () => {
            sent.push(item);
            return item;
          };
          return step.write("pay", { item }, send, options);
        }),
      );
      if (dies) throw new Error("dies");
      return receipts.join(" ");
    });
    await expect(graph.invoke({ log: [] }, thread(what))).rejects.toThrow("dies");
    expect(sent).toEqual(["y", "x"]);
    dies = false;
    const result = await graph.invoke(null, thread(what));
    if (log === undefined) expect(result).toMatchObject({ __interrupt__: [{ value: { kind: "INPUT_DRIFT" } }] });
    else expect(result.log).toEqual(log);
    expect(sent).toEqual(["y", "x"]);
    expect((await stepsOf(db, what)).filter(({ name }) => name === "pay")).toHaveLength(2);
  });
});
