// A ledger as an operator finds it at three in the morning: threads that wait, run, failed, and one with a write that nobody
// knows the outcome of.
import { approvalsOf, decide, type Ledger } from "../../src/index.js";
import { oneNode, reset, thread } from "../rules/harness.js";
import type { TestDatabase } from "../support/database.js";
import { type PaidStep, writeThread } from "../support/paidSteps.js";
import { payment } from "./paymentGraph.js";

/** What one thread of the night asks. */
export const ASKED = "contract-2026-117";
/** What one has in doubt, and one did. */
export const DOUBT = "payout-884";
export const RESEARCH = "research/lithium supply";

export async function writeNight(db: TestDatabase, ledger: Ledger): Promise<void> {
  await writeResearch(db);
  const publish = { action: "send_contract", approvers: ["ann", "role:legal"], timeoutMs: 47 * 3_600_000 };
  const description = "Send the signed supply contract to Halden AS, with the payment terms of the draft of Thursday.";
  await payment(ledger, { ...publish, description }).graph.invoke({ amount: 48_000 }, thread(ASKED));
  await payment(ledger, { action: "refund", approvers: ["finance-lead"] }).graph.invoke(
    { amount: 12 },
    thread("refund-31"),
  );
  await payment(ledger).graph.invoke({ amount: 250 }, thread("invoice-2093"));
  const [open] = await approvalsOf(ledger, { status: "pending", threadId: "invoice-2093" });
  const edit = {
    status: "edited",
    args: { amount: 200, currency: "EUR", to: "ACC-1" },
    comment: "As agreed on the phone.",
  } as const;
  await decide(ledger, { approvalId: open?.id ?? "", by: "ann", decision: edit });
  await payment(ledger).graph.invoke(null, thread("invoice-2093"));
  const doubtful = oneNode(ledger, (step) =>
    step.write("charge_card", { cents: 1999 }, async () => {
      throw reset();
    }),
  );
  await doubtful.invoke({ log: [] }, thread(DOUBT));
  const failing = oneNode(ledger, (step) =>
    step.write("book_flight", { to: "OSL" }, async () => {
      throw Object.assign(new Error("No seats left on SK 4035"), { status: 422 });
    }),
  );
  await failing.invoke({ log: [] }, thread("trip-oslo")).catch(() => {});
  await db.sql(
    "insert into longhaul.wakes values ('trip-oslo', longhaul.ledger_now() - interval '3 min', 'a retry is due') on conflict do nothing",
  );
}

/** A night of research, with a day of waiting in the middle. */
async function writeResearch(db: TestDatabase): Promise<void> {
  const steps: PaidStep[] = [];
  let at = Date.now() - 31 * 3_600_000;
  const add = (step: Omit<PaidStep, "startedAt" | "endedAt">, tookMs: number) => {
    steps.push({ ...step, startedAt: new Date(at).toISOString(), endedAt: new Date(at + tookMs).toISOString() });
    at += tookMs + 300;
  };
  add(
    { node: "plan", superstep: 1, model: "gpt-5.2", costNanoUsd: 41_250_000n, inputTokens: 5200, outputTokens: 1900 },
    14_000,
  );
  for (let i = 0; i < 14; i++) {
    add({ node: "search", superstep: 2 + i, kind: "tool", name: "web_search" }, 900 + (i % 5) * 350);
    const cost = BigInt(6_400_000 + (i % 4) * 3_700_000);
    add(
      { node: "read", superstep: 2 + i, model: i % 3 === 0 ? "gpt-5.2" : "gpt-5-mini", costNanoUsd: cost },
      5200 + (i % 6) * 1400,
    );
    if (i === 8) at += 26 * 3_600_000;
  }
  add(
    {
      node: "write",
      superstep: 17,
      model: "gpt-5.2",
      costNanoUsd: 218_000_000n,
      inputTokens: 48_000,
      outputTokens: 6100,
    },
    61_000,
  );
  add({ node: "publish", superstep: 18, kind: "tool", name: "publish_report" }, 2300);
  await writeThread(db, RESEARCH, steps);
  await db.sql(
    `insert into longhaul.budgets (scope, thread_id, depth, limit_nano_usd, limit_tokens, spent_nano_usd, spent_tokens, reserved_nano_usd)
     values ($1, $1, 0, 500000000, 200000, 431000000, 84000, 25000000)`,
    [RESEARCH],
  );
}
