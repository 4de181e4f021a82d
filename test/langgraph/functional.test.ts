// The functional API: entrypoints and tasks use the ledger, budgets and approvals as nodes do.
import { entrypoint, getPreviousState, task } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  approvalsOf,
  budgetScope,
  decide,
  durable,
  durableGraph,
  durableModel,
  type Ledger,
  raiseBudget,
  requestApproval,
} from "../../src/index.js";
import { RETRY, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { startScript } from "../support/script.js";
import { startWorld } from "../support/world.js";

let db: TestDatabase;
let ledger: Ledger;
let models: Awaited<ReturnType<typeof modelServer>>;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  models = await modelServer();
});

describe("an entrypoint with durableGraph", () => {
  it("records the steps of its tasks and its own, and after a failure repeats none", async () => {
    const did: string[] = [];
    let dies = true;
    const fetchPage = task("fetch", async (url: string) =>
      durable().step.read("page", { url }, async () => `page ${did.push(url)}`),
    );
    const publish = task("publish", async (text: string) =>
      durable().step.write("publish", { text }, async () => `published ${did.push(text)}`),
    );
    const workflow = durableGraph(
      entrypoint("workflow", async (url: string) => {
        const [a, b] = await Promise.all([fetchPage(`${url}/a`), fetchPage(`${url}/b`)]);
        const { step } = durable();
        const sum = await step.read("sum", { a, b }, async () => `sum ${did.push("sum")}`);
        const published = await publish(`${sum}`);
        if (dies) throw new Error("the process dies");
        return published;
      }),
      { ledger },
    );
    await expect(workflow.invoke("u", thread("functional"))).rejects.toThrow("the process dies");
    dies = false;
    expect(await workflow.invoke(null as never, thread("functional"))).toBe("published 4");
    expect(did.sort()).toEqual(["sum", "sum 3", "u/a", "u/b"]);
    const steps = await db.sql("select name, state from longhaul.steps where thread_id = 'functional' order by name");
    expect(steps).toEqual(["page", "page", "publish", "sum"].map((name) => ({ name, state: "SUCCEEDED" })));
  });

  it("tells tasks of one name apart, and repeats no write of one that LangGraph tries again", async () => {
    const did: number[] = [];
    let tries = 0;
    const pay = task({ name: "pay", retry: RETRY }, async (n: number) => {
      const paid = await durable().step.write("pay", { n }, async () => did.push(n));
      if (n === 1 && ++tries < 3) throw new Error("once more");
      return paid;
    });
    const workflow = durableGraph(
      entrypoint("pays", async (ns: number[]) => Promise.all(ns.map((n) => pay(n)))),
      { ledger },
    );
    expect(await workflow.invoke([1, 2, 1], thread("pays"))).toHaveLength(3);
    expect(did.sort()).toEqual([1, 1, 2]);
    // In the next run the same is paid again, and nobody is asked whether it is a repetition.
    expect(await workflow.invoke([1], thread("pays"))).toEqual([4]);
  });

  it("pauses at its budget, in a task as in the entrypoint, and goes on when it is raised", async () => {
    const ask = task("ask", async (text: string) => (await durableModel(models.chat()).invoke(text)).text);
    const workflow = durableGraph(
      entrypoint("asks", async (texts: string[]) => {
        const answers: string[] = [];
        for (const text of texts) answers.push(await ask(text));
        return answers.length;
      }),
      { ledger, budget: { modelCalls: 2 } },
    );
    const before = models.requests();
    const paused = (await workflow.invoke(["a", "b", "c"], thread("asks"))) as unknown as { __interrupt__: unknown[] };
    expect(paused.__interrupt__).toMatchObject([{ value: { kind: "BUDGET_EXCEEDED" } }]);
    await raiseBudget(ledger, { threadId: "asks", by: "ann", modelCalls: 5 });
    expect(await workflow.invoke(null as never, thread("asks"))).toBe(3);
    expect(models.requests() - before).toBe(3);
  });

  it("waits for approval in a task and in the entrypoint, and uses each decision once", async () => {
    const did: string[] = [];
    const publish = task("publish", async (text: string) => {
      const decision = await requestApproval({}, { action: "publish", args: { text } });
      if (!decision.allowed) return "refused";
      return durable().step.write("publish", decision.args, async () => `published ${did.push(text)}`);
    });
    const workflow = durableGraph(
      entrypoint("approved", async (text: string, config) => {
        const start = await requestApproval(config, { action: "start", args: { text } });
        return start.allowed ? publish(text) : "not started";
      }),
      { ledger },
    );
    await workflow.invoke("hello", thread("approved"));
    for (const action of ["start", "publish"]) {
      const [open] = await approvalsOf(ledger, { threadId: "approved", status: "pending" });
      expect(open?.action).toBe(action);
      await decide(ledger, { approvalId: open?.id ?? "", by: "ann", decision: { status: "approved" } });
      await workflow.invoke(null as never, thread("approved"));
    }
    expect(did).toEqual(["hello"]);
    expect((await workflow.getState(thread("approved"))).values).toBe("published 1");
  });

  it("keeps previous results, and parts have budgets of their own", async () => {
    const workflow = durableGraph(
      entrypoint("mixed", async (n: number, config) => {
        const previous = getPreviousState<number | undefined>() ?? 0;
        const part = await budgetScope(config, { name: "part", budget: { modelCalls: 1 } }, async ({ step }) =>
          step.read("part", { n }, async () => n),
        );
        return previous + part;
      }),
      { ledger },
    );
    expect(await workflow.invoke(1, thread("mixed"))).toBe(1);
    expect(await workflow.invoke(2, thread("mixed"))).toBe(3);
  });

  it("killed in a task's write goes on in another process, and the write happened once", async () => {
    const world = await startWorld();
    const argv = [db.url, world.url];
    const first = startScript("test/langgraph/functional.child.ts", argv);
    world.beforeAnswer = ({ amount }) => void (amount === 2 && first.child.kill("SIGKILL"));
    expect(await first.ended).toMatchObject({ signal: "SIGKILL" });
    world.beforeAnswer = () => {};
    await db.advance(60_000);
    const second = await startScript("test/langgraph/functional.child.ts", [...argv, "again"]).ended;
    expect(second.lines.at(-1), second.stderr).toEqual({ result: ["po_1", "po_2", "po_3"] });
    expect(world.payments.map(({ amount }) => amount)).toEqual([1, 2, 3]);
    await world.close();
  });
});
