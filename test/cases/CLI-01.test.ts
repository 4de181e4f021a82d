import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { approvalsOf, decide } from "../../src/index.js";
import { payment } from "../server/paymentGraph.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { devProject } from "../support/devServer.js";
import { work } from "../support/workers.js";
import { startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  world = await startWorld();
});
afterAll(() => world.close());

describe("CLI-01: one graph under langgraphjs dev and in plain node", () => {
  it("CLI-01: keeps its own checkpointer in both and says so in one line, and node goes on where the server stopped, with one effect", async () => {
    const project = await devProject(db.url, world.url);
    const server = await project.start();
    const begin = async (graph: string, input: Record<string, unknown>) => {
      const { thread_id } = await server.client.threads.create();
      const paused = await server.client.runs.wait(thread_id, graph, { input });
      return { thread_id, interrupts: (paused as { __interrupt__?: { value: unknown }[] }).__interrupt__ ?? [] };
    };
    const asking = await begin("asking", { log: [] });
    expect(asking.interrupts, server.log()).toHaveLength(1);
    const approving = await begin("approving", { amount: 5, log: [] });
    expect(approving.interrupts).toMatchObject([{ value: { kind: "APPROVAL" } }]);
    const limited = await begin("limited", { log: [] });
    expect(limited.interrupts).toMatchObject([{ value: { kind: "BUDGET_EXCEEDED" } }]);
    expect(server.log().match(/The ledger's checkpointer is in use/g)).toHaveLength(1);
    // What the server's own saver knows dies with it.
    await server.kill();

    const task = { url: db.url, worldUrl: world.url, thread: asking.thread_id, shape: "asking" } as const;
    expect((await work({ ...task, input: "resume" })).log).toEqual(["answer yes", "pay po_1", "after"]);
    expect(world.count("pay", asking.thread_id)).toBe(1);
    const steps = (thread: string) =>
      db.sql("select name, state, attempt from longhaul.steps where thread_id = $1", [thread]);
    expect(await steps(asking.thread_id)).toEqual([{ name: "pay", state: "SUCCEEDED", attempt: 1 }]);
    const checkpoints = await db.sql("select 1 from longhaul.checkpoints where thread_id = $1", [asking.thread_id]);
    expect(checkpoints.length).toBeGreaterThan(3);

    const ledger = db.openLedger();
    const [request] = await approvalsOf(ledger, { threadId: approving.thread_id });
    expect(request?.status).toBe("pending");
    await decide(ledger, { approvalId: request?.id ?? "", by: "ann", decision: { status: "approved" } });
    const { graph, paid } = payment(ledger);
    await graph.invoke(null, { configurable: { thread_id: approving.thread_id } });
    expect(paid).toEqual([5]);

    const budget = { iterations: 1 };
    const again = await work({ ...task, thread: limited.thread_id, shape: "guarded", budget });
    expect(again.log).toEqual(["a"]);
    expect(world.count("pay", limited.thread_id)).toBe(0);
  }, 180_000);
});
