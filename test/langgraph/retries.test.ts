// One layer of retries: how often a failure is tried again, how long it waits, and what would multiply it.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { END, START, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  type Classifier,
  drainReason,
  durableGraph,
  durableModel,
  durableNode,
  operation,
  redrive,
} from "../../src/index.js";
import { oneNode, RETRY, State, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

/** A server that answers every request as told; the client throws what it answers, headers included. */
async function api(answer: (n: number) => { status: number; headers?: Record<string, string> }) {
  let requests = 0;
  const server = createServer((_request, response) => {
    const { status, headers } = answer(++requests);
    response.writeHead(status, headers).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    requests: () => requests,
    call: async (): Promise<string> => {
      const response = await fetch(url);
      await response.text();
      if (response.ok) return `answer ${requests}`;
      throw Object.assign(new Error(`status ${response.status}`), {
        status: response.status,
        headers: response.headers,
      });
    },
  };
}

const drainOf = (run: Promise<unknown>) =>
  run.then(
    () => undefined,
    (error: unknown) => drainReason(error)?.kind,
  );

describe("a wait that is too long for the process", () => {
  it.each(["read", "write"] as const)(
    "of a %s is recorded with its time, and no run asks before it",
    async (effect) => {
      const id = `long-${effect}`;
      const remote = await api((n) =>
        n === 1 ? { status: 429, headers: { "retry-after": "3600" } } : { status: 200 },
      );
      const graph = oneNode(db.openLedger(), (step) => step[effect]("ask", {}, remote.call));
      expect(await drainOf(graph.invoke({ log: [] }, thread(id)))).toBe("due");
      const [row] = await db.sql<{ state: string; waits: number; wakes: number }>(
        `select s.state, round(extract(epoch from s.due_at - longhaul.ledger_now()) / 60)::int as waits,
        (select count(*)::int from longhaul.wakes w where w.thread_id = s.thread_id) as wakes
       from longhaul.steps s where s.thread_id = $1`,
        [id],
      );
      expect(row).toEqual({ state: "RETRY_SCHEDULED", waits: 60, wakes: 1 });
      expect(await drainOf(graph.invoke(null, thread(id)))).toBe("due");
      expect(remote.requests()).toBe(1);
      await db.advance(3_601_000);
      expect((await graph.invoke(null, thread(id))).log).toEqual(["answer 2"]);
      expect((await stepsOf(db, id)).map(({ state }) => state)).toEqual(["SUCCEEDED"]);
    },
  );

  it("counts towards the cap, however many runs it takes", async () => {
    const remote = await api(() => ({ status: 503, headers: { "retry-after": "3600" } }));
    const graph = oneNode(db.openLedger(), (step) => step.read("ask", {}, remote.call, { retry: { failures: 3 } }));
    const run = (input: object | null) => graph.invoke(input as { log: string[] }, thread("long-cap"));
    expect(await drainOf(run({ log: [] }))).toBe("due");
    await db.advance(3_601_000);
    expect(await drainOf(run(null))).toBe("due");
    await db.advance(3_601_000);
    await expect(run(null)).rejects.toThrow("status 503");
    expect(remote.requests()).toBe(3);
    // Given up, it has as many tries again: the next run is somebody's decision.
    expect(await drainOf(run(null))).toBe("due");
    expect(remote.requests()).toBe(4);
  });

  it("of a step under a business key outlives the place where it began", async () => {
    const remote = await api((n) => (n === 1 ? { status: 429, headers: { "retry-after": "3600" } } : { status: 200 }));
    const graph = oneNode(db.openLedger(), (step) => step.write("ask", {}, remote.call, { key: "order-7" }));
    expect(await drainOf(graph.invoke({ log: [] }, thread("keyed")))).toBe("due");
    // New input: the thread goes on elsewhere, and comes to the same order there.
    expect(await drainOf(graph.invoke({ log: ["again"] }, thread("keyed")))).toBe("due");
    await db.advance(3_601_000);
    expect((await graph.invoke(null, thread("keyed"))).log).toEqual(["again", "answer 2"]);
    expect(remote.requests()).toBe(2);
  });

  it("asked for as 317 years is one of a day (TIM-02)", async () => {
    const remote = await api((n) =>
      n === 1 ? { status: 429, headers: { "retry-after": "9999999999" } } : { status: 200 },
    );
    const graph = oneNode(db.openLedger(), (step) => step.write("ask", {}, remote.call));
    expect(await drainOf(graph.invoke({ log: [] }, thread("years")))).toBe("due");
    await db.advance(24 * 3_600_000 + 1_000);
    expect((await graph.invoke(null, thread("years"))).log).toEqual(["answer 2"]);
  });
});

it("a redrive gives a step that had used up its tries as many again", async () => {
  const remote = await api((n) => (n < 4 ? { status: 429, headers: { "retry-after": "0" } } : { status: 200 }));
  const ledger = db.openLedger();
  const graph = oneNode(ledger, (step) => step.write("pay", {}, remote.call, { retry: { failures: 2 } }));
  await expect(graph.invoke({ log: [] }, thread("redriven"))).rejects.toMatchObject({ code: "STEP_FAILED" });
  expect(await redrive(ledger, { threadId: "redriven", by: "ann" })).toHaveLength(1);
  expect((await graph.invoke(null, thread("redriven"))).log).toEqual(["answer 4"]);
});

describe("two equal reads at once", () => {
  it("of which one must wait for an hour: the run waits, and has not lost its thread", async () => {
    let asked = 0;
    let letGo: () => void = () => {};
    const scheduled = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const ask = async () => {
      if (++asked === 1) throw Object.assign(new Error("not now"), { status: 429, headers: { "retry-after": "3600" } });
      await scheduled;
      return "answered";
    };
    const graph = oneNode(db.openLedger(), async (step) => {
      // Whichever of them is refused lets the other have its answer.
      const reads = [1, 2].map(() => step.read("ask", {}, ask, { key: "one" }).finally(letGo));
      return (await Promise.allSettled(reads)).length;
    });
    expect(await drainOf(graph.invoke({ log: [] }, thread("equal")))).toBe("due");
    await db.advance(3_601_000);
    expect((await graph.invoke(null, thread("equal"))).log).toEqual(["2"]);
  });
});

describe("a run in an outage", () => {
  it("tries again a hundred times in all, whatever number of steps it has", async () => {
    const remote = await api(() => ({ status: 429, headers: { "retry-after": "0" } }));
    const names = Array.from({ length: 30 }, (_, n) => `ask-${n}`);
    const graph = oneNode(db.openLedger(), (step) =>
      Promise.allSettled(names.map((name) => step.read(name, {}, remote.call))).then((all) => all.length),
    );
    await graph.invoke({ log: [] }, thread("outage"));
    expect(remote.requests()).toBe(30 + 100);
  });
});

describe("a classifier", () => {
  const pay = (classify: Classifier, error: object, id: string, run = vi.fn()) => {
    run.mockImplementation(async () => {
      throw error;
    });
    const graph = oneNode(db.openLedger(), (step) =>
      step.write("pay", {}, run as never, { classify, retry: { failures: 1 } }),
    );
    return graph.invoke({ log: [] }, thread(id)).then(
      (state) => ("__interrupt__" in state ? "asked" : "done"),
      (error: Error & { code?: string }) => error.code,
    );
  };
  const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });

  it("has the first word: what the pack takes for a lost answer can be a plain no", async () => {
    expect(await pay(() => "permanent", reset, "said-no")).toBe("STEP_FAILED");
    expect(await pay(() => undefined, reset, "said-nothing")).toBe("asked");
  });

  it("that throws, or answers what is no class, has said nothing", async () => {
    const throws = () => {
      throw new TypeError("cannot read");
    };
    expect(await pay(throws, reset, "throws")).toBe("asked");
    expect(await pay((() => "retry!") as never, reset, "nonsense")).toBe("asked");
    expect(await pay((async () => "permanent") as never, reset, "promise")).toBe("asked");
    expect(await pay((async () => throws()) as never, reset, "rejects")).toBe("asked");
  });
});

describe("a cap of retries", () => {
  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1.5, "3", null])(
    "of %s is refused before anything happens",
    async (failures) => {
      const retry = { failures } as never;
      const refused = expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringContaining("retry.failures"),
      });
      expect(() => operation({ name: "pay", version: "1.0.0", effect: "write", retry, run: async () => 1 })).toThrow(
        refused,
      );
      const models = await modelServer();
      expect(() => durableModel(models.chat(), { retry })).toThrow(refused);
      const run = vi.fn();
      const graph = oneNode(db.openLedger(), (step) => step.write("pay", {}, run, { retry }));
      await expect(graph.invoke({ log: [] }, thread(`cap-${failures}`))).rejects.toEqual(refused);
      expect(run).not.toHaveBeenCalled();
    },
  );
});

/** A model that sends by a way of its own. */
class OwnWay extends BaseChatModel {
  override caller = {} as never;
  _llmType() {
    return "own-way";
  }
  async _generate(): Promise<ChatResult> {
    return { generations: [{ text: "yes", message: new AIMessage("yes") }] };
  }
}

describe("a layer of retries that multiplies ours is named when it is made", () => {
  const warnings = (make: () => unknown): string[] => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    make();
    const said = warn.mock.calls.map(([text, options]) => {
      expect(options).toEqual({ code: "LONGHAUL_RETRY_LAYERS" });
      return String(text);
    });
    warn.mockRestore();
    return said;
  };
  const node = durableNode(State, async () => ({ log: [] }));
  const graphOf = (options: object) =>
    new StateGraph(State).addNode("ask", node, options).addEdge(START, "ask").addEdge("ask", END);

  it("a retryPolicy on a durable node, also below and from the defaults", async () => {
    const ledger = db.openLedger();
    const [flat, ...none] = warnings(() => durableGraph(graphOf({ retryPolicy: RETRY }), { ledger }));
    expect(flat).toMatch(/durable node "ask" has a `retryPolicy`/);
    expect(none).toEqual([]);
    const outer = new StateGraph(State)
      .addNode("outer", graphOf({ retryPolicy: RETRY }).compile())
      .addEdge(START, "outer")
      .addEdge("outer", END);
    expect(warnings(() => durableGraph(outer, { ledger }))).toEqual([expect.stringContaining('"outer/ask"')]);
    const defaults = graphOf({}).setNodeDefaults({ retryPolicy: RETRY });
    expect(warnings(() => durableGraph(defaults, { ledger }))).toEqual([expect.stringContaining('"ask"')]);
    expect(warnings(() => durableGraph(graphOf({}), { ledger }))).toEqual([]);
  });

  it("withRetry() on a durable model, and a model whose own retries cannot be seen", async () => {
    const models = await modelServer();
    expect(warnings(() => durableModel(models.chat({ maxRetries: 6 }), { retry: { failures: 3 } }))).toEqual([]);
    expect(warnings(() => durableModel(models.chat()).withRetry())).toEqual([expect.stringContaining("withRetry()")]);
    expect(warnings(() => durableModel(new OwnWay({})))).toEqual([]);
    expect(warnings(() => durableModel(new OwnWay({}), { retry: { failures: 3 } }))).toEqual([
      expect.stringContaining("OwnWay"),
    ]);
  });
});
