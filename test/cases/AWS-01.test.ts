import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type Ledger, OutcomeUnknownError, type Step, settle } from "../../src/index.js";
import { historyOf, oneNode, RETRY, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, startNode } from "../support/script.js";
import { type Payment, startWorld, type World } from "../support/world.js";

let db: TestDatabase;
let ledger: Ledger;
let world: World;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  world = await startWorld();
});
afterAll(() => world.close());

/** A process that pays once, at most: it prints what its node caught and what the run came to. */
const PAYING = `
import { Annotation, START, StateGraph } from "@langchain/langgraph";
const [, library, url, worldUrl, thread, input] = process.argv;
const { durableGraph, durableNode, openLedger, OutcomeUnknownError } = await import(library);
const State = Annotation.Root({ log: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const pay = async ({ idempotencyKey, signal }) => {
  const headers = { "idempotency-key": idempotencyKey };
  const answer = await fetch(worldUrl + "/pay?thread=" + thread, { method: "POST", headers, body: '{"amount":1}', signal });
  return answer.json();
};
let caught;
const node = durableNode(State, async (_state, { step }) => {
  try {
    return { log: [(await step.write("pay", { amount: 1 }, pay, { onUnknown: "throw" })).id] };
  } catch (error) {
    if (!(error instanceof OutcomeUnknownError)) throw error;
    const { name, code, status, idempotencyKey, attempt, threadId, step } = error;
    caught = { name, code, status, idempotencyKey, attempt, threadId, step };
    return { log: ["interrupted"] };
  }
});
const builder = new StateGraph(State).addNode("pay", node).addNode("after", async () => ({ log: ["after"] }));
const ledger = openLedger({ url });
const graph = durableGraph(builder.addEdge(START, "pay").addEdge("pay", "after"), { ledger });
const { log } = await graph.invoke(JSON.parse(input), { configurable: { thread_id: thread } });
console.log(JSON.stringify({ log, caught }));
await ledger.close();
`;

function startPaying(threadId: string, input: object | null) {
  const library = pathToFileURL(join(inject("scripts"), "src/index.js")).href;
  const argv = [library, db.url, world.url, threadId, JSON.stringify(input)];
  return startNode(["--input-type=module", "--eval", PAYING, ...argv]);
}

/** Pays at the world, which never answers; at most once. */
async function pay(step: Step, threadId: string): Promise<string> {
  const { id } = await step.write(
    "pay",
    { amount: 1 },
    async ({ idempotencyKey, signal }) => {
      const headers = { "idempotency-key": idempotencyKey };
      const request = { method: "POST", headers, body: '{"amount":1}', signal };
      return (await (await fetch(`${world.url}/pay?thread=${threadId}`, request)).json()) as Payment;
    },
    { onUnknown: "throw", timeoutMs: 1000 },
  );
  return id;
}

const answersNothing = () => new Promise<void>(() => {});
const UNKNOWN = [{ name: "pay", state: "NEEDS_RECONCILIATION", attempt: 1, doubt: true }];

/** What the error says of the payment that the world has. */
function interrupted(threadId: string, node: string) {
  return {
    name: "OutcomeUnknownError",
    code: "OUTCOME_UNKNOWN",
    status: 409,
    idempotencyKey: world.paymentsOf(threadId)[0]?.key,
    attempt: 1,
    threadId,
    step: `${node}/pay`,
  };
}

describe("AWS-01: an at-most-once step that was interrupted says so", () => {
  it("AWS-01: killed inside the write: the next process's node catches OutcomeUnknownError, and the write is not sent again", async () => {
    const { child, ended } = startPaying("killed", { log: [] });
    world.beforeAnswer = async () => {
      child.kill("SIGKILL");
      await ended;
    };
    expect(await ended).toMatchObject({ signal: "SIGKILL", lines: [], stderr: "" });
    world.beforeAnswer = () => {};
    expect(world.paymentsOf("killed")).toHaveLength(1);
    expect(await stepsOf(db, "killed")).toMatchObject([{ name: "pay", state: "RUNNING", attempt: 1 }]);
    const resumed = await startPaying("killed", null).ended;
    const line = { log: ["interrupted", "after"], caught: interrupted("killed", "pay") };
    expect(resumed).toEqual({ code: 0, signal: null, lines: [line], stderr: "" });
    expect(world.count("pay", "killed")).toBe(1);
    // The node went on; what nobody knows is still not known, and asked about.
    expect(await stepsOf(db, "killed")).toMatchObject(UNKNOWN);
    const { lines } = await longhaul(db.url, "reconcile", "list");
    expect(lines).toMatchObject([{ threadId: "killed", key: line.caught.idempotencyKey, question: "outcome" }]);
  });

  it("AWS-01: timed out in the process: the same error, and the node goes on with another step", async () => {
    world.beforeAnswer = answersNothing;
    let caught: unknown;
    const graph = oneNode(ledger, async (step) => {
      try {
        return await pay(step, "timeout");
      } catch (error) {
        caught = error;
        return await step.write("alarm", {}, async () => "alarm raised");
      }
    });
    expect((await graph.invoke({ log: [] }, thread("timeout"))).log).toEqual(["alarm raised"]);
    expect(caught).toBeInstanceOf(OutcomeUnknownError);
    expect(caught).toMatchObject(interrupted("timeout", "node"));
    expect(world.count("pay", "timeout")).toBe(1);
    expect(await stepsOf(db, "timeout")).toMatchObject([...UNKNOWN, { name: "alarm", state: "SUCCEEDED" }]);
  });

  it("AWS-01: not caught, it ends the run as itself; no retryPolicy runs it again, and a person's word settles it", async () => {
    world.beforeAnswer = answersNothing;
    let runs = 0;
    const graph = oneNode(
      ledger,
      (step) => {
        runs++;
        return pay(step, "uncaught");
      },
      { retryPolicy: RETRY },
    );
    const left = await graph.invoke({ log: [] }, thread("uncaught")).catch((error: unknown) => error);
    expect(left).toBeInstanceOf(OutcomeUnknownError);
    expect(left).toMatchObject(interrupted("uncaught", "node"));
    await expect(graph.invoke(null, thread("uncaught"))).rejects.toMatchObject(interrupted("uncaught", "node"));
    expect([runs, world.count("pay", "uncaught")]).toEqual([2, 1]);
    expect(await historyOf(db, "uncaught")).toEqual(["RUNNING", "NEEDS_RECONCILIATION"]);
    const [receipt] = world.paymentsOf("uncaught");
    await settle(ledger, { idempotencyKey: receipt?.key ?? "", by: "ann", outcome: "happened", receipt });
    expect((await graph.invoke(null, thread("uncaught"))).log).toEqual([receipt?.id]);
    expect([runs, world.count("pay", "uncaught")]).toEqual([3, 1]);
  });
});
