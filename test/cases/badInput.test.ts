// What people get wrong: a clear error before any effect, and nothing half-written.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  durable,
  durableGraph,
  durableNode,
  type Ledger,
  type LedgerOptions,
  openLedger,
  type Step,
  settle,
} from "../../src/index.js";
import { DATABASE, type OpenedLedger } from "../../src/openLedger.js";
import { inboxApp } from "../../src/server/index.js";
import { sweepHere } from "../../src/worker/index.js";
import { createDatabase, type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, runScript } from "../support/script.js";

const State = Annotation.Root({ log: Annotation<unknown[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const VARIABLES = ["LONGHAUL_DATABASE_URL", "DATABASE_URI", "POSTGRES_URI", "POSTGRES_URI_CUSTOM"];

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const thread = (thread_id: string) => ({ configurable: { thread_id } });

function oneNode(work: (step: Step) => Promise<unknown>, target: Ledger = ledger) {
  const builder = new StateGraph(State)
    .addNode(
      "node",
      durableNode(State, async (_state, { step }) => ({ log: [await work(step)] })),
    )
    .addEdge(START, "node")
    .addEdge("node", END);
  return durableGraph(builder, { ledger: target });
}

const stepsOf = (threadId: string) =>
  db.sql("select name, state, attempt from longhaul.steps where thread_id = $1", [threadId]);

function opens(options: LedgerOptions): Promise<unknown> {
  const opened = openLedger(options) as OpenedLedger;
  return opened[DATABASE]();
}

describe("a database that is not there, or not ours", () => {
  it("in production without an address: says which variable to set", async () => {
    for (const name of VARIABLES) vi.stubEnv(name, undefined);
    vi.stubEnv("NODE_ENV", "production");
    await expect(opens({})).rejects.toMatchObject({
      code: "DATABASE",
      message: expect.stringContaining("Set LONGHAUL_DATABASE_URL"),
    });
    // What a server is made of says so before it serves anybody.
    expect(() => sweepHere(openLedger())).toThrow("Set LONGHAUL_DATABASE_URL");
    expect(() => inboxApp({ ledger: openLedger() })).toThrow("Set LONGHAUL_DATABASE_URL");
    const cli = await runScript("src/cli/main.ts", ["runs", "--json"], { NODE_ENV: "production" });
    expect(cli).toMatchObject({
      code: 1,
      lines: [{ error: "DATABASE", message: expect.stringContaining("Set LONGHAUL_DATABASE_URL") }],
    });
  });

  it("unreachable: a DatabaseError that keeps the password to itself, before any node", async () => {
    const url = "postgres://postgres:hunter22@127.0.0.1:1/nowhere";
    const ran: string[] = [];
    const graph = oneNode(async () => ran.push("node"), openLedger({ url }));
    const error: unknown = await graph.invoke({ log: [] }, thread("t")).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "DATABASE", message: expect.stringContaining("cannot be reached") });
    expect(String(error)).not.toContain("hunter22");
    expect(ran).toEqual([]);
  });

  it("of a newer version: refused with both versions, and left as it is", async () => {
    const url = await createDatabase();
    const newer = openLedger({ url }) as OpenedLedger;
    const { pool } = await newer[DATABASE]();
    await pool.query("insert into longhaul.migrations (version, name, checksum) values (99, '0099_later.sql', 'x')");
    const before = await pool.query("select version, checksum, applied_at from longhaul.migrations order by version");
    await expect(opens({ url })).rejects.toMatchObject({
      code: "SCHEMA_VERSION",
      message: expect.stringMatching(/version 99.*up to \d.*Update the package/s),
    });
    const cli = await longhaul(url, "migrate");
    expect(cli).toMatchObject({ code: 1, lines: [{ error: "SCHEMA_VERSION" }] });
    const after = await pool.query("select version, checksum, applied_at from longhaul.migrations order by version");
    expect(after.rows).toEqual(before.rows);
    await newer.close();
  });
});

describe("options and names that cannot be", () => {
  it.each<[string, LedgerOptions]>([
    ["a negative lease", { leaseMs: -1 }],
    ["a lease of 0", { leaseMs: 0 }],
    ["a lease that is not a number", { leaseMs: Number.NaN }],
    ["a lease of half a millisecond", { leaseMs: 0.5 }],
    ["an endless lease", { leaseMs: Number.POSITIVE_INFINITY }],
    ["an illegal schema name", { schema: 'x"; drop schema public; --' }],
    ["a schema name that is too long", { schema: "x".repeat(64) }],
    ["a pool without connections", { maxConnections: 0 }],
    ["a namespace with NUL", { namespace: "a\0b" }],
  ])("%s is refused when the ledger is opened", (_what, options) => {
    expect(() => openLedger({ url: "postgres://127.0.0.1:1/nowhere", ...options })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", status: 400 }),
    );
  });

  it.each(["a\0b", "", "\ud800", "x".repeat(513)])("the thread id %j is refused before any node", async (id) => {
    const ran: string[] = [];
    const graph = oneNode(async () => ran.push("node"));
    const refused = expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining("thread_id") });
    await expect(graph.invoke({ log: [] }, thread(id))).rejects.toEqual(refused);
    await expect(graph.updateState(thread(id), { log: [1] })).rejects.toEqual(refused);
    expect(ran).toEqual([]);
  });

  it("a graph without a thread is told how to give one", async () => {
    await expect(oneNode(async () => 1).invoke({ log: [] })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("thread_id"),
    });
  });

  it("an unknown thread, key or half an answer on the command line: says so, with an exit code", async () => {
    const key = "0".repeat(64);
    const [show, settled, half] = await Promise.all([
      longhaul(db.url, "show", "nobody"),
      longhaul(db.url, "reconcile", "settle", key, "--happened", "{}"),
      longhaul(db.url, "reconcile", "settle", key, "--happened", "{"),
    ]);
    expect(show).toMatchObject({
      code: 1,
      lines: [{ error: "NOT_FOUND", message: expect.stringContaining('"nobody"') }],
    });
    expect(settled).toMatchObject({ code: 1, lines: [{ error: "NOT_FOUND" }] });
    expect(half).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
  });
});

describe("steps that cannot be", () => {
  it.each<[string, unknown, string]>([
    ["a function", { order: { send: () => 1 } }, "order.send"],
    ["a BigInt", { cents: 10n }, "cents"],
    ["NaN", [Number.NaN], "[0]"],
    ["a Date", { at: new Date(0) }, "at"],
  ])("an input with %s is refused with its path, and nothing is sent", async (name, input, path) => {
    const sent: string[] = [];
    const graph = oneNode((step) => step.write("pay", input, async () => sent.push("pay")));
    await expect(graph.invoke({ log: [] }, thread(`input ${name}`))).rejects.toMatchObject({
      code: "UNSERIALIZABLE",
      status: 400,
      path: expect.stringContaining(path),
    });
    expect(sent).toEqual([]);
    expect(await stepsOf(`input ${name}`)).toEqual([]);
  });

  it("a step inside a step's run is refused and not run", async () => {
    const sent: string[] = [];
    const graph = oneNode((step) =>
      step.read("outer", {}, async () => step.write("inner", {}, async () => sent.push("inner"))),
    );
    await expect(graph.invoke({ log: [] }, thread("nested"))).rejects.toMatchObject({
      code: "NESTED_STEP",
      step: "node/inner",
    });
    expect(sent).toEqual([]);
    expect(await stepsOf("nested")).toEqual([]);
  });

  it("a step inside a write is refused and not run, and the write is not left in doubt", async () => {
    const sent: string[] = [];
    const graph = oneNode((step) =>
      step.write("outer", {}, async () => step.write("inner", {}, async () => sent.push("inner"))),
    );
    await expect(graph.invoke({ log: [] }, thread("nested write"))).rejects.toThrow(
      /"inner" was opened inside another step's run/,
    );
    expect(sent).toEqual([]);
    expect(await stepsOf("nested write")).toEqual([{ name: "outer", state: "FAILED_PERMANENT", attempt: 1 }]);
  });

  it("two open steps of one name without a key are refused on the first run, and the first is not half done", async () => {
    const sent: string[] = [];
    const send = (what: string) => async () => sent.push(what);
    const graph = oneNode((step) =>
      Promise.all([step.write("pay", { n: 1 }, send("one")), step.write("pay", { n: 2 }, send("two"))]),
    );
    await expect(graph.invoke({ log: [] }, thread("twins"))).rejects.toMatchObject({ code: "STEP_USAGE" });
    expect(sent).not.toContain("two");
    const states = sent.length === 0 ? [] : [{ name: "pay", state: "SUCCEEDED", attempt: 1 }];
    expect(await stepsOf("twins")).toEqual(states);
  });

  it("a step that its node does not await is an error that names it", async () => {
    const graph = oneNode(async (step) => {
      step.read("left alone", {}, async () => 1).catch(() => {});
      return 1;
    });
    await expect(graph.invoke({ log: [] }, thread("left"))).rejects.toMatchObject({
      code: "STEP_USAGE",
      message: expect.stringContaining('"left alone"'),
    });
  });

  it.each([
    [
      "a durableNode",
      durableNode(State, async (_state, { step }) => ({ log: [await step.read("x", {}, async () => 1)] })),
    ],
    [
      "durable()",
      async (_state: unknown, runtime: object) => ({ log: [await durable(runtime).step.read("x", {}, async () => 1)] }),
    ],
  ])("%s in a graph that is not durable is told to wrap the graph", async (_what, node) => {
    const graph = new StateGraph(State).addNode("node", node).addEdge(START, "node").addEdge("node", END).compile();
    await expect(graph.invoke({ log: [] }, thread("plain"))).rejects.toMatchObject({
      code: "NOT_IN_DURABLE_GRAPH",
      message: expect.stringContaining("durableGraph(graph, { ledger })"),
    });
  });
});

interface Question {
  readonly idempotencyKey: string;
  readonly message: string;
}

describe("a write whose output cannot be stored", () => {
  it("is known to have happened, waits for a person with the path, and is never sent again", async () => {
    const sent: string[] = [];
    const graph = oneNode((step) =>
      step.write("pay", {}, async () => {
        sent.push("pay");
        return { id: "po_1", socket: { close: () => {} } } as unknown;
      }),
    );
    const config = thread("output");
    expect(await graph.invoke({ log: [] }, config)).toHaveProperty("__interrupt__");
    for (let i = 0; i < 2; i++) await graph.invoke(null, config);
    const interrupts = (await graph.getState(config)).tasks.flatMap((task) => task.interrupts);
    expect(interrupts).toHaveLength(1);
    const [{ idempotencyKey: key, message }] = interrupts.map(({ value }) => value) as [Question];
    expect(message).toContain("output of pay.socket.close");
    expect(await stepsOf("output")).toEqual([{ name: "pay", state: "NEEDS_RECONCILIATION", attempt: 1 }]);
    const listed = await longhaul(db.url, "reconcile", "list");
    expect(listed.lines).toEqual([expect.objectContaining({ key, question: "output" })]);
    // It happened: "it did not" is no answer, however long one waits.
    await db.advance(3_600_000);
    await expect(settle(ledger, { idempotencyKey: key, by: "ann", outcome: "did-not-happen" })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
    const settled = await longhaul(db.url, "reconcile", "settle", key, "--happened", '{"id":"po_1"}', "--by", "ann");
    expect(settled).toMatchObject({ code: 0, lines: [{ result: "settled", threadId: "output" }] });
    expect(await graph.invoke(null, config)).toMatchObject({ log: [{ id: "po_1" }] });
    expect(sent).toEqual(["pay"]);
  });

  it("is not sent again by a lookup or because it is idempotent", async () => {
    const sent: string[] = [];
    const lookup = async () => {
      sent.push("lookup");
      return { outcome: "did-not-happen" as const };
    };
    const pay = async (): Promise<unknown> => {
      sent.push("pay");
      return () => {};
    };
    const effects = { idempotent: true, keyLifetimeMs: 86_400_000, settleMs: 1, lookup };
    const graph = oneNode((step) => step.write("pay", {}, pay, effects));
    for (const input of [{ log: [] }, null, null]) {
      expect(await graph.invoke(input, thread("output lookup"))).toHaveProperty("__interrupt__");
    }
    expect(sent).toEqual(["pay"]);
  });
});
