// The examples run as they stand, and print what they say: one idea each, at most sixty lines.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createDatabase } from "../support/database.js";

const run = promisify(execFile);

/** What each example prints. */
const SAYS: Readonly<Record<string, readonly string[]>> = {
  "01-first-step": [
    "first run:  the node fails after its step",
    "second run: sun over Paris, asked 1 time(s)",
    "the world was asked 1 time(s)",
  ],
  "02-kill-and-resume": ["first process: SIGKILL, sent 3 of 5", "second process: done, sent 5 of 5", "sent twice: 0"],
  "03-unknown-outcome": [
    "with a lookup:    found by its key; the bank took 40",
    "without a lookup: NEEDS_RECONCILIATION; the bank took 40 and 60",
    "settled:          found by Ann; the bank took 40 and 60",
  ],
  "04-budget": ["BUDGET_EXCEEDED after 4 thoughts, 4 paid", "raised by Ann: 8 thoughts, 8 paid, none twice"],
  "05-approval-with-timeout": [
    'asked: delete-records {"olderThanDays":30}',
    "nothing deleted: expired",
    'asked: delete-records {"olderThanDays":30}',
    "deleted what is older than 365 days: edited by ann",
  ],
  "06-tool-upgrade": [
    'sent: {"to":"Ann, Paris"}',
    "asked: send 1.0.0 -> 2.0.0, migrate?",
    'sent: {"name":"Bob","city":"Rome"}',
  ],
  "07-time-travel": [
    "first:  visa,Ritz,flight",
    "asked:  SIBLING_EFFECT",
    "branch: visa,Plaza,flight",
    "booked: visa,Ritz,flight,Plaza",
  ],
  "08-create-agent": [
    "first process:  2 answers paid, 0 refunds",
    'it asks:        refund {"id":7,"usd":120}',
    "second process: 3 answers paid, 1 refunds",
    "it says:        The 120 dollars are on their way.",
  ],
  "09-deepagents": [
    "BUDGET_EXCEEDED: 5 model calls, read rivers, lakes",
    "raised by Ann: 7 model calls, read rivers, lakes",
    "Rivers flow, lakes do not.",
  ],
  "10-contract-signing": [
    "hour  0: asks ann",
    "hour 40: the worker goes down",
    "hour 60: still asks ann; the worker comes back",
    "asks ann, bob",
    "hour 70: bob says yes: applied",
    "signed: No. 7, by bob",
    "done",
  ],
  "11-incident": [
    "logs api: OutOfMemory",
    "paged: approval.requested restart",
    "restart api: done",
    "The api ran out of memory; it is up again.",
  ],
  "12-trigger-and-worker": ["delivered 3 times: started 1 run(s)", "parcel 1: shipped 1 time(s)"],
};

const examples = readdirSync("examples").filter((name) => /^\d\d-/.test(name));

it("every example is known here, and has at most sixty lines", () => {
  expect(examples.map((name) => name.replace(".ts", ""))).toEqual(Object.keys(SAYS));
  for (const name of examples) {
    expect(readFileSync(`examples/${name}`, "utf8").trim().split("\n").length, name).toBeLessThanOrEqual(60);
  }
});

it.each(Object.entries(SAYS))(
  "%s prints what it promises",
  async (name, lines) => {
    const { stdout } = await run(process.execPath, ["--import", "tsx", `examples/${name}.ts`], {
      env: { PATH: process.env["PATH"], LONGHAUL_DATABASE_URL: await createDatabase() },
      timeout: 80_000,
    });
    const printed = stdout.trim().split("\n");
    expect(printed.map((line) => line.trim())).toEqual(lines);
  },
  90_000,
);
