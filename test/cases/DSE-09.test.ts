import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Command } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { drainReason, type EffectOptions, type Ledger, type LookupAnswer } from "../../src/index.js";
import { historyOf, oneNode, stepsOf, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, runScript } from "../support/script.js";

const AMOUNT = 1250;
const SETTLE_MS = 3_600_000;
/** The provider has the request long before, also on a busy machine. */
const TIMEOUT_MS = 1000;
const WITHHOLDINGS = ["closes the socket", "never answers"] as const;
type Withholding = (typeof WITHHOLDINGS)[number];

interface Payment {
  readonly id: string;
  readonly key: string;
}

let db: TestDatabase;
let ledger: Ledger;
const closing: (() => void)[] = [];
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
});
afterAll(() => {
  for (const close of closing) close();
});

/**
 * A payment provider that does not deduplicate. It makes `commits` payments of a POST: none when the request was lost on
 * the way, two when a proxy sent it on twice.
 */
async function startProvider(commits: number, withholding: Withholding) {
  const state = { commits, withholding: withholding as Withholding | "nothing", url: "" };
  const posts: string[] = [];
  const payments: Payment[] = [];
  let lookups = 0;
  const server = createServer((request, response) => {
    const key = String(request.headers["idempotency-key"]);
    const answer = (value: object) => response.end(JSON.stringify(value));
    if (request.method === "GET") {
      lookups++;
      return answer(payments.filter((payment) => payment.key === key));
    }
    posts.push(key);
    for (let i = 0; i < state.commits; i++) payments.push({ id: `po_${payments.length + 1}`, key });
    if (state.withholding === "closes the socket") request.socket.destroy();
    if (state.withholding === "nothing") answer(payments.at(-1) ?? {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/payments`,
    posts,
    payments,
    lookups: () => lookups,
    /** From now on it does what it is asked, and says so. */
    recover: () => Object.assign(state, { commits: 1, withholding: "nothing" }),
  };
}

type Provider = Awaited<ReturnType<typeof startProvider>>;
type PayOptions = Pick<EffectOptions<object, Payment>, "lookup" | "onUnknown">;

/** A graph that pays once. */
function paying(provider: Provider, options: PayOptions) {
  const pay = async ({ idempotencyKey, signal }: { idempotencyKey: string; signal: AbortSignal }) => {
    const headers = { "idempotency-key": idempotencyKey };
    const answer = await fetch(provider.url, { method: "POST", headers, body: JSON.stringify({ AMOUNT }), signal });
    return (await answer.json()) as Payment;
  };
  return oneNode(ledger, async (step) => {
    const limits = { settleMs: SETTLE_MS, timeoutMs: TIMEOUT_MS };
    return (await step.write("pay", { amount: AMOUNT }, pay, { ...limits, ...options })).id;
  });
}

/** Asks the provider which payments it has under the key. */
function byKey(provider: Provider): PayOptions {
  const lookup = async ({ idempotencyKey, signal }: { idempotencyKey: string; signal: AbortSignal }) => {
    const answer = await fetch(provider.url, { headers: { "idempotency-key": idempotencyKey }, signal });
    const receipts = (await answer.json()) as Payment[];
    const [receipt, ...more] = receipts;
    const found: LookupAnswer<Payment> =
      receipt === undefined
        ? { outcome: "did-not-happen" }
        : more.length === 0
          ? { outcome: "happened", receipt }
          : { outcome: "several", receipts };
    return found;
  };
  return { lookup };
}

type Paying = ReturnType<typeof paying>;
const goOn = (graph: Paying, id: string) => graph.invoke(null, thread(id)).catch(drainReason);
const start = (graph: Paying, id: string) => graph.invoke({ log: [] }, thread(id)).catch(drainReason);
const keyOf = async (id: string) => (await stepsOf(db, id))[0]?.key ?? "";
const UNKNOWN = [{ name: "pay", state: "NEEDS_RECONCILIATION", attempt: 1, doubt: true }];

describe.each(WITHHOLDINGS)("DSE-09: the provider %s, and its books tell", (withholding) => {
  it("DSE-09: no payment: it stays unknown and unsent until the settle time has passed, then it is paid once", async () => {
    const id = `none, ${withholding}`;
    const provider = await startProvider(0, withholding);
    const graph = paying(provider, byKey(provider));
    expect(await start(graph, id)).toMatchObject({ kind: "due", idempotencyKey: await keyOf(id) });
    expect([provider.posts.length, provider.lookups()]).toEqual([1, 1]);
    for (const ms of [0, SETTLE_MS - 60_000]) {
      await db.advance(ms);
      expect(await goOn(graph, id)).toMatchObject({ kind: "due" });
      expect(await stepsOf(db, id)).toMatchObject(UNKNOWN);
    }
    expect([provider.posts.length, provider.lookups()]).toEqual([1, 1]);
    provider.recover();
    await db.advance(60_001);
    expect(await goOn(graph, id)).toMatchObject({ log: ["po_1"] });
    const key = await keyOf(id);
    expect(provider.posts).toEqual([key, key]);
    expect(provider.payments).toHaveLength(1);
    expect(await stepsOf(db, id)).toMatchObject([{ state: "SUCCEEDED", attempt: 2, doubt: false }]);
  });

  it("DSE-09: no payment, and a person says so: their word counts after the same time, and not before", async () => {
    const id = `none, ${withholding}, by a person`;
    const provider = await startProvider(0, withholding);
    const graph = paying(provider, {});
    expect(await start(graph, id)).toHaveProperty("__interrupt__");
    const say = async () => longhaul(db.url, "reconcile", "settle", await keyOf(id), "--did-not-happen", "--by", "ann");
    for (const ms of [0, SETTLE_MS - 60_000]) {
      await db.advance(ms);
      expect(await say()).toMatchObject({ code: 3, lines: [{ result: "not-yet", notBefore: expect.any(String) }] });
      expect(await goOn(graph, id)).toHaveProperty("__interrupt__");
      expect(await stepsOf(db, id)).toMatchObject(UNKNOWN);
    }
    expect(provider.posts).toHaveLength(1);
    provider.recover();
    await db.advance(60_001);
    expect(await say()).toMatchObject({ code: 0, lines: [{ result: "settled", threadId: id }] });
    expect(await goOn(graph, id)).toMatchObject({ log: ["po_1"] });
    const key = await keyOf(id);
    expect(provider.posts).toEqual([key, key]);
    expect(provider.payments).toHaveLength(1);
  });

  it("DSE-09: one payment: that is the receipt, and nothing is sent a second time", async () => {
    const id = `one, ${withholding}`;
    const provider = await startProvider(1, withholding);
    const graph = paying(provider, byKey(provider));
    expect(await start(graph, id)).toMatchObject({ log: ["po_1"] });
    expect([provider.posts.length, provider.lookups()]).toEqual([1, 1]);
    expect(await historyOf(db, id)).toEqual(["RUNNING", "NEEDS_RECONCILIATION", "SUCCEEDED"]);
    const stored = await db.sql(
      "select convert_from(output, 'utf8')::json as receipt, attempt from longhaul.steps where thread_id = $1",
      [id],
    );
    expect(stored).toEqual([{ receipt: provider.payments[0], attempt: 1 }]);
    await db.advance(2 * SETTLE_MS);
    expect(await goOn(graph, id)).toMatchObject({ log: ["po_1"] });
    expect(provider.payments).toHaveLength(1);
  });

  it("DSE-09: two payments: a person decides, and whatever the thread is resumed with, nothing is sent", async () => {
    const id = `two, ${withholding}`;
    const provider = await startProvider(2, withholding);
    const graph = paying(provider, byKey(provider));
    const asked = await start(graph, id);
    const value = { kind: "NEEDS_RECONCILIATION", idempotencyKey: await keyOf(id) };
    expect(asked).toMatchObject({ __interrupt__: [{ value }] });
    await db.advance(2 * SETTLE_MS);
    for (const resume of ["yes", { outcome: "did-not-happen" }]) {
      const resumed = await graph.invoke(new Command({ resume }), thread(id));
      expect(resumed).toMatchObject({ __interrupt__: [{ value }] });
    }
    expect(await goOn(graph, id)).toMatchObject({ __interrupt__: [{ value }] });
    // Books that hold two payments are not asked over and over.
    expect([provider.posts.length, provider.lookups()]).toEqual([1, 1]);
    expect(await historyOf(db, id)).toEqual(["RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN"]);
    const refused = await longhaul(db.url, "reconcile", "settle", await keyOf(id), "--did-not-happen", "--by", "ann");
    expect(refused).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
    expect(JSON.stringify(refused.lines)).toContain("found it 2 times");
    const kept = JSON.stringify(provider.payments[1]);
    const settled = await longhaul(db.url, "reconcile", "settle", await keyOf(id), "--happened", kept, "--by", "ann");
    expect(settled).toMatchObject({ code: 0, lines: [{ result: "settled" }] });
    expect(await goOn(graph, id)).toMatchObject({ log: ["po_2"] });
    expect(provider.posts).toHaveLength(1);
  });
});

describe("DSE-09: what people read of an unknown outcome", () => {
  it('DSE-09: says that it is not known, and never "try again" or "retry"', async () => {
    const texts: string[] = [];
    for (const withholding of WITHHOLDINGS) {
      const [none, two] = await Promise.all([startProvider(0, withholding), startProvider(2, withholding)]);
      const left = await Promise.all([
        start(paying(none, byKey(none)), `said, none, ${withholding}`),
        start(paying(two, byKey(two)), `said, two, ${withholding}`),
        start(paying(two, {}), `said, no lookup, ${withholding}`),
        paying(two, { onUnknown: "throw" })
          .invoke({ log: [] }, thread(`said, thrown, ${withholding}`))
          .catch(({ name, message }: Error) => `${name}: ${message}`),
      ]);
      expect(left[0]).toMatchObject({ kind: "due" });
      for (const asked of left.slice(1, 3)) expect(asked).toHaveProperty("__interrupt__");
      for (const nobodyKnows of left.slice(2)) expect(JSON.stringify(nobodyKnows)).toContain("is not known");
      texts.push(...left.map((end) => JSON.stringify(end)));
    }
    const { lines } = await longhaul(db.url, "reconcile", "list");
    const said = lines.filter(({ threadId }) => String(threadId).startsWith("said"));
    expect(said.map(({ question }) => question).sort()).toEqual([
      ...Array(6).fill("outcome"),
      ...Array(2).fill("several"),
    ]);
    const table = await runScript("src/cli/main.ts", ["reconcile", "list", "--url", db.url]);
    expect(table).toMatchObject({ code: 0, stderr: "" });
    texts.push(...said.map((line) => JSON.stringify(line)), ...table.lines.map(({ text }) => String(text)));
    expect(texts.filter((text) => /\btr(y|ied|ying)\s+(it\s+)?again\b|\bretr(y|ies|ied|ying)\b/i.test(text))).toEqual(
      [],
    );
  });
});
