import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { durableGraph, durableNode, type LookupAnswer, settle } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";

const NODE_TIMEOUT_MS = 1000;
const COMMITS_AT_MS = 400;
const ANSWERS_AT_MS = 1500;

const State = Annotation.Root({ ticket: Annotation<string> });
const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** A remote system that commits long before it answers. */
async function startRemote() {
  const tickets: string[] = [];
  let posts = 0;
  const answer = (response: ServerResponse, id: string) => {
    if (!response.destroyed) response.end(JSON.stringify({ id }));
  };
  const server = createServer((request, response) => {
    if (request.method === "GET") return void response.end(JSON.stringify(tickets));
    const id = `CHG-${++posts}`;
    setTimeout(() => tickets.push(id), COMMITS_AT_MS);
    setTimeout(() => answer(response, id), ANSWERS_AT_MS);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tickets, posts: () => posts };
}

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

async function ticketGraph(options: { heedsSignal: boolean; lookup: boolean }) {
  const remote = await startRemote();
  const ledger = db.openLedger();
  const attempts: number[] = [];
  const lookup = async (): Promise<LookupAnswer<string>> => {
    const found = (await (await fetch(remote.url)).json()) as string[];
    return found[0] === undefined ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: found[0] };
  };
  const graph = durableGraph(
    new StateGraph(State)
      .addNode(
        "open",
        durableNode(State, async (_state, { step, executionInfo }) => {
          attempts.push(executionInfo?.nodeAttempt ?? 0);
          const ticket = await step.write(
            "open_change_ticket",
            { title: "x" },
            async ({ signal }) => {
              const answer = await fetch(remote.url, { method: "POST", ...(options.heedsSignal ? { signal } : {}) });
              return ((await answer.json()) as { id: string }).id;
            },
            options.lookup ? { lookup, settleMs: 300 } : {},
          );
          return { ticket };
        }),
        { timeout: NODE_TIMEOUT_MS, retryPolicy: { logWarning: false } },
      )
      .addEdge(START, "open"),
    { ledger },
  );
  const row = async (id: string) =>
    (
      await db.sql<{ state: string; attempt: number; key: string }>(
        "select state, attempt, encode(key, 'hex') as key from longhaul.steps where thread_id = $1",
        [id],
      )
    )[0];
  /** Runs the thread again until it is at its end, as a worker would. */
  const carryOn = async (id: string) => {
    let state: { ticket?: string } | undefined = await graph.invoke({ ticket: "" }, thread(id)).catch(() => undefined);
    for (let i = 0; i < 10 && !state?.ticket; i++) state = await graph.invoke(null, thread(id)).catch(() => undefined);
    return state?.ticket;
  };
  return { graph, ledger, remote, attempts, row, carryOn };
}

describe("DSE-08: a node timeout is no proof of failure", () => {
  it.each([
    ["heeds its signal", true],
    ["does not heed its signal", false],
  ])("DSE-08: a call that %s is looked up after the timeout, and never sent again", async (what, heedsSignal) => {
    const { carryOn, remote, row } = await ticketGraph({ heedsSignal, lookup: true });
    expect(await carryOn(what)).toBe("CHG-1");
    expect(await row(what)).toMatchObject({ state: "SUCCEEDED", attempt: 1 });
    expect([remote.posts(), remote.tickets]).toEqual([1, ["CHG-1"]]);
  });

  it("DSE-08: without a lookup the call is unknown, not retryable: it waits for a person", async () => {
    const { graph, ledger, remote, row } = await ticketGraph({ heedsSignal: true, lookup: false });
    await graph.invoke({ ticket: "" }, thread("asked")).catch(() => undefined);
    const paused = await graph.invoke(null, thread("asked"));
    expect(paused).toMatchObject({ __interrupt__: [{ value: { kind: "NEEDS_RECONCILIATION" } }] });
    expect(await row("asked")).toMatchObject({ state: "NEEDS_RECONCILIATION", attempt: 1 });
    const idempotencyKey = (await row("asked"))?.key ?? "";
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "CHG-1" });
    expect(await graph.invoke(null, thread("asked"))).toEqual({ ticket: "CHG-1" });
    expect([remote.posts(), remote.tickets]).toEqual([1, ["CHG-1"]]);
  });
});
