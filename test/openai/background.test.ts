// Background responses of OpenAI (R40): a crash pays for none of them again, and a conversation goes on across it.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cancelRun, drainReason, type Ledger, raiseBudget } from "../../src/index.js";
import { backgroundResponse } from "../../src/openai/index.js";
import { stepsOfThread } from "../../src/postgres/stepRows.js";
import { thread } from "../rules/harness.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { startScript } from "../support/script.js";
import { conversation } from "./conversation.js";
import { responsesServer } from "./responsesServer.js";

let db: TestDatabase;
let ledger: Ledger;
let server: Awaited<ReturnType<typeof responsesServer>>;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});
beforeEach(async () => {
  server = await responsesServer();
});
afterAll(() => server.close());

const TEXTS = ["answer to one", "answer to two"];
const requests = () => server.orders.map(({ request }) => [request["input"], request["previous_response_id"]]);

/** What the thread's budget has counted. */
async function spentBy(threadId: string) {
  const [row] = await db.sql(
    "select spent_tokens as tokens, spent_model_calls as calls, reserved_tokens as held from longhaul.budgets where scope = $1",
    [threadId],
  );
  return row;
}

describe("a background response", () => {
  it("is ordered once, looked at until it is ready, recorded with its cost, and not asked for on a replay", async () => {
    server.on.begins = () => "in_progress";
    server.on.looked = (response, times) => {
      if (times === 12) response.status = "completed";
    };
    const warnings: string[] = [];
    const note = ({ name }: Error) => void warnings.push(name);
    process.on("warning", note);
    const result = await conversation(ledger, server.url).invoke({ texts: [] }, thread("plain"));
    expect(result).toEqual({ texts: TEXTS, last: "resp_2" });
    expect(requests()).toEqual([
      ["one", undefined],
      ["two", "resp_1"],
    ]);
    expect(server.orders[0]?.request).toMatchObject({ background: true, store: true });
    expect(server.looks).toHaveLength(24);
    process.off("warning", note);
    expect(warnings).toEqual([]);
    const steps = await stepsOfThread(await databaseOf(db.openLedger()), "plain");
    expect(steps.map(({ record: { name, kind, usage } }) => [name, kind, usage?.costNanoUsd])).toEqual([
      ["response.order", "node", undefined],
      ["response", "llm", 1_200_000n],
      ["response.order", "node", undefined],
      ["response", "llm", 1_200_000n],
    ]);
  });

  it("of a process that was killed while it waited is collected by the next, and the conversation goes on", async () => {
    const argv = [db.url, server.url];
    const first = startScript("test/openai/background.child.ts", argv);
    server.on.begins = (nth) => (nth === 2 ? "in_progress" : "completed");
    server.on.looked = (response) => void (response.id === "resp_2" && first.child.kill("SIGKILL"));
    expect(await first.ended).toMatchObject({ signal: "SIGKILL" });
    server.on.looked = (response) => {
      response.status = "completed";
    };
    await db.advance(60_000);
    const second = await startScript("test/openai/background.child.ts", [...argv, "again"]).ended;
    expect(second.lines.at(-1), second.stderr).toEqual({ texts: TEXTS, last: "resp_2" });
    // What the dead process held was counted as its estimate, and is what the response took now.
    expect(await spentBy("killed")).toEqual({ tokens: "3000", calls: "2", held: "0" });
    expect(requests()).toEqual([
      ["one", undefined],
      ["two", "resp_1"],
    ]);
  });

  it("spends from the budget: what it may take is held, what it took is counted, and a refused one is not ordered", async () => {
    const graph = conversation(ledger, server.url, { budget: { tokens: 2000 } });
    const paused = (await graph.invoke({ texts: [] }, thread("budget"))) as unknown as { __interrupt__: unknown[] };
    expect(paused.__interrupt__).toMatchObject([
      { value: { kind: "BUDGET_EXCEEDED", limit: "tokens", spent: "1500" } },
    ]);
    expect(server.orders).toHaveLength(1);
    await raiseBudget(ledger, { threadId: "budget", by: "ann", tokens: 5000 });
    expect(await graph.invoke(null, thread("budget"))).toMatchObject({ texts: TEXTS });
    expect(await spentBy("budget")).toEqual({ tokens: "3000", calls: "2", held: "0" });
  });

  it("that OpenAI says it failed to make is ordered again as often as it may be; one that cannot be made is not", async () => {
    server.on.begins = (nth) => (nth === 1 ? "failed" : "completed");
    server.on.ordered = (made) => {
      if (made.status === "failed") made.error = { code: "server_error", message: "oops" };
    };
    expect(await conversation(ledger, server.url).invoke({ texts: [] }, thread("failed"))).toMatchObject({
      texts: TEXTS,
    });
    expect(server.orders).toHaveLength(3);
    server.on.begins = () => "failed";
    server.on.ordered = (made) => {
      made.error = { code: "invalid_prompt", message: "no" };
    };
    const run = conversation(ledger, server.url).invoke({ texts: [] }, thread("invalid"));
    await expect(run).rejects.toMatchObject({ name: "ResponseFailed", errorCode: "invalid_prompt" });
    expect(server.orders).toHaveLength(4);
  });

  it("is cancelled with its run", async () => {
    server.on.begins = () => "in_progress";
    const waited = new Promise<void>((resolve) => {
      server.on.looked = () => resolve();
    });
    const short = db.openLedger({ leaseMs: 3000 });
    const run = conversation(short, server.url).invoke({ texts: [] }, thread("cancelled")).catch(drainReason);
    await waited;
    await cancelRun(ledger, { threadId: "cancelled", by: "ann" });
    expect(await run).toMatchObject({ kind: "cancelled" });
    await expect.poll(() => server.cancelled, { timeout: 10_000 }).toEqual(["resp_1"]);
  });

  it("refuses what it could not collect", async () => {
    const client = { responses: { create: () => {}, retrieve: () => {} } } as never;
    const ask = { model: "gpt-5", input: "x" };
    for (const [request, options, message] of [
      [{ ...ask, stream: true }, {}, /stream/],
      [{ ...ask, store: false }, {}, /store/],
      [ask, { pollMs: 0 }, /pollMs/],
      [ask, { failures: 0 }, /failures/],
      [ask, { poll: 1 }, /poll/],
    ] as const) {
      await expect(backgroundResponse({}, client, request as never, options as never)).rejects.toThrow(message);
    }
    await expect(backgroundResponse({}, {} as never, ask)).rejects.toThrow(/new OpenAI/);
    await expect(backgroundResponse({}, client, ask)).rejects.toMatchObject({ code: "NOT_IN_DURABLE_GRAPH" });
  });
});
