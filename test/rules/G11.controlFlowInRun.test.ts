// G11: an interrupt, a Command or a drain inside a write's run is "unknown, sent", and an error that says where to ask.
import { Command, GraphDrained, interrupt } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { drainReason } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { oneNode, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

describe("G11: control flow inside a write's run", () => {
  it.each<[string, () => unknown]>([
    ["interrupt()", () => interrupt("3-D Secure: confirm?")],
    [
      "a drain",
      () => {
        throw new GraphDrained("bye");
      },
    ],
  ])("%s: one effect, in doubt, with a sentence that says to ask before the step", async (what, leave) => {
    let sent = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.write("pay", {}, async () => {
        sent++;
        return String(leave());
      }),
    );
    const id = `in ${what}`;
    const answers = [true, "yes", { decision: "yes" }];
    expect(await graph.invoke({ log: [] }, thread(id))).toHaveProperty("__interrupt__");
    for (const resume of answers)
      expect(await graph.invoke(new Command({ resume }), thread(id))).toHaveProperty("__interrupt__");
    expect(await graph.invoke(null, thread(id))).toHaveProperty("__interrupt__");
    expect(sent).toBe(1);
    expect(await stepsOf(db, id)).toMatchObject([{ state: "NEEDS_RECONCILIATION", attempt: 1, doubt: true }]);
    const [row] = await db.sql<{ error: { message: string } }>(
      "select error from longhaul.steps where thread_id = $1",
      [id],
    );
    expect(row?.error.message).toContain("Ask before the step, not inside it");
  });

  it("interrupt() inside a read's run passes through: nothing happened, and no attempt is counted", async () => {
    let asked = 0;
    const graph = oneNode(db.openLedger(), (step) =>
      step.read("page", {}, async () => {
        asked++;
        return `page ${interrupt("which?")}`;
      }),
    );
    expect(await graph.invoke({ log: [] }, thread("read"))).toHaveProperty("__interrupt__");
    expect((await graph.invoke(new Command({ resume: 7 }), thread("read"))).log).toEqual(["page 7"]);
    expect(asked).toBe(2);
    expect(await stepsOf(db, "read")).toMatchObject([{ state: "SUCCEEDED", attempt: 1 }]);
  });

  it("a question before the step is asked once, and the step happens once", async () => {
    let sent = 0;
    const graph = oneNode(db.openLedger(), async (step) => {
      const answer = interrupt("confirm?");
      return step.write("pay", {}, async () => `${answer} ${++sent}`);
    });
    const first = await graph.invoke({ log: [] }, thread("before")).catch(drainReason);
    expect(first).toHaveProperty("__interrupt__");
    expect((await graph.invoke(new Command({ resume: "yes" }), thread("before"))).log).toEqual(["yes 1"]);
  });
});
