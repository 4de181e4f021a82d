// A process that makes many calls at once, on a thread of its own, under a scope that it shares with others.
// argv: database address, thread, scope, calls. Prints how many were admitted.
import { randomUUID } from "node:crypto";
import { NOTHING } from "../../src/core/budget.js";
import { openLedger } from "../../src/index.js";
import { LEDGER_PARTS } from "../../src/langgraph/ledger.js";

const [url = "", threadId = "", scope = "", calls = "0"] = process.argv.slice(2);
const ledger = openLedger({ url, maxConnections: 12 });
const { budgets, runs } = await ledger[LEDGER_PARTS].open();
const answer = await runs.acquire(threadId, randomUUID(), 60_000, "run");
if (!("ticket" in answer)) throw new Error("The thread is busy.");
const { ticket } = answer;
const admitted = await Promise.all(
  Array.from({ length: Number(calls) }, async (_, i) => {
    const id = `${threadId}:${i}`;
    const request = { ...NOTHING, modelCalls: 1, tokens: 10 };
    const held = await budgets.reserve(ticket, { id, stepKey: undefined, attempt: 1, scopes: [scope], request });
    if (!("reserved" in held)) return 0;
    await budgets.settle(id, { ...NOTHING, modelCalls: 1, tokens: i });
    return 1;
  }),
);
process.stdout.write(`${JSON.stringify({ admitted: admitted.reduce<number>((sum, one) => sum + one, 0) })}\n`);
await ledger.close();
