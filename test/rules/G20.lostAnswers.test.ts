// G20: zero rows is a question. A statement that was committed with its answer lost is sent again, and the answer is
// read from the row: nobody is busy with himself, fenced by himself, or overtaken by himself.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LookupAnswer, openLedger } from "../../src/index.js";
import type { PoolLike } from "../../src/postgres/pool.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { listeningPool } from "../support/pools.js";
import { historyOf, oneNode, reset, stepsOf, thread } from "./harness.js";

let db: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  db = await testDatabase();
  pool = new pg.Pool({ connectionString: db.url });
  pool.on("error", () => {});
});
afterAll(() => pool.end());

/** A pool that loses the answer to the first statement of a name; all names are noted. */
function losing(statement: string | undefined): { pool: PoolLike; names: Set<string> } {
  const names = new Set<string>();
  let lost = false;
  return {
    names,
    pool: listeningPool(pool, async (name, send) => {
      names.add(name);
      const answer = await send();
      if (name !== statement || lost) return answer;
      lost = true;
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    }),
  };
}

/** A read, a write that could not be sent at first, and one whose answer was lost on the way. */
async function run(id: string, statement?: string) {
  const effects: string[] = [];
  let connects = 0;
  const listening = losing(statement);
  const graph = oneNode(openLedger({ pool: listening.pool }), async (step) => {
    const page = await step.read("page", {}, async () => "page");
    const first = await step.write("first", {}, async () => {
      if (++connects === 1) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
      effects.push("first");
      return "1";
    });
    const lookup = async (): Promise<LookupAnswer<string>> => ({ outcome: "happened", receipt: "2" });
    const second = await step.write(
      "second",
      {},
      async (): Promise<string> => {
        effects.push("second");
        throw reset();
      },
      { lookup },
    );
    return [page, first, second].join(" ");
  });
  const { log } = await graph.invoke({ log: [] }, thread(id));
  const [row] = await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [id]);
  const steps = await stepsOf(db, id);
  const evidence = await db.sql(
    "select 1 from longhaul.late_receipts join longhaul.steps using (key) where thread_id = $1",
    [id],
  );
  return {
    names: [...listening.names],
    seen: {
      log,
      effects,
      thread: row?.state,
      history: await historyOf(db, id),
      lateReceipts: evidence.length,
      steps: steps.map(({ name, state, attempt }) => ({ name, state, attempt })),
    },
  };
}

describe("G20: a statement whose answer was lost", () => {
  it("ends as one whose answer came, whichever statement of a run it is", async () => {
    const undisturbed = await run("undisturbed");
    expect(undisturbed.seen).toMatchObject({
      log: ["page 1 2"],
      effects: ["first", "second"],
      thread: "done",
      lateReceipts: 0,
      steps: [{ attempt: 1 }, { name: "first", attempt: 2 }, { name: "second", attempt: 1 }],
    });
    expect(undisturbed.names).toEqual(
      expect.arrayContaining(
        ["acquire", "begin_write", "claim_again", "succeed", "settle"].map((name) => `lh_${name}`),
      ),
    );
    for (const name of undisturbed.names) {
      const { seen } = await run(`lost ${name}`, name);
      expect({ name, ...seen }).toEqual({ name, ...undisturbed.seen });
    }
  });
});
