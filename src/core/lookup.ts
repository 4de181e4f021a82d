// Asking the world whether an effect happened, and what its answer settles. "It did not happen" counts only after the
// settle time (G1); what the world cannot tell goes to a person.
import type { Codec } from "./codec.js";
import { UnserializableError } from "./errors.js";
import { recordFailure } from "./failure.js";
import type { Settlement, StepRecord } from "./ledger.js";
import { IN_PROCESS_WAIT_MS } from "./retry.js";

/** What the world says of a write. `receipt` has the shape of what the step's `run` returns. */
export type LookupAnswer<O = unknown> =
  | { readonly outcome: "happened"; readonly receipt: O }
  | { readonly outcome: "did-not-happen" }
  | { readonly outcome: "cannot-tell" }
  | { readonly outcome: "several"; readonly receipts: readonly O[] };

// biome-ignore lint/suspicious/noExplicitAny: a lookup is stored next to steps of every input type; typed at its definition
export type Lookup<I = any, O = any> = (args: {
  idempotencyKey: string;
  input: I;
  signal: AbortSignal;
}) => Promise<LookupAnswer<O>>;

/** A lookup is one request; a provider that needs longer than this to answer one is not answering. */
const LOOKUP_TIMEOUT_MS = 30_000;
/** After this many lookups that failed, more of the same teaches nothing: a person decides. */
const MAX_LOOKUPS = 10;
const OUTCOMES = new Set(["happened", "did-not-happen", "cannot-tell", "several"]);

/** Asks the world once, with the RECORDED input, and says what that settles. */
export async function lookUp(record: StepRecord, lookup: Lookup, codec: Codec): Promise<Settlement> {
  const actor = "lookup";
  let answer: LookupAnswer;
  try {
    answer = await askWorld(record, lookup);
  } catch (error) {
    return lookupFailed(record, error);
  }
  switch (answer.outcome) {
    case "happened":
      return storeReceipt(record, answer.receipt, codec);
    case "did-not-happen": {
      const waitMs = (record.settledFrom ?? record.readAt).getTime() - record.readAt.getTime();
      return waitMs <= 0
        ? { to: "READY", actor, reason: "it did not happen, and the settle time has passed" }
        : {
            to: "NEEDS_RECONCILIATION",
            actor,
            reason: "it did not happen yet",
            dueInMs: waitMs,
            wake: waitMs > IN_PROCESS_WAIT_MS,
          };
    }
    case "several":
      return severalTimes(answer.receipts.length);
    case "cannot-tell":
      return { to: "WAITING_HUMAN", actor, reason: "the lookup cannot tell" };
  }
}

/** The failure's code where a lookup found more than one effect. */
export const SEVERAL = "SEVERAL_EFFECTS";
/** The failure's code where a lookup found the effect, and its receipt cannot be stored. */
export const UNSTORABLE = "RECEIPT_UNSTORABLE";

/** Whether evidence says that the write happened, though its receipt is missing: nobody can say then that it did not. */
export function hasHappened({ effectKnown, failure }: StepRecord): boolean {
  return effectKnown || failure?.code === SEVERAL || failure?.code === UNSTORABLE;
}

function severalTimes(times: number): Settlement {
  const message = `Its lookup found it ${times} times.`;
  return {
    to: "WAITING_HUMAN",
    actor: "lookup",
    reason: `it happened ${times} times`,
    failure: { name: "SeveralEffects", message, code: SEVERAL },
  };
}

async function askWorld(record: StepRecord, lookup: Lookup): Promise<LookupAnswer> {
  const signal = AbortSignal.timeout(LOOKUP_TIMEOUT_MS);
  const input: unknown = JSON.parse(record.input ?? "null");
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => undefined);
  const ask = async () => lookup({ idempotencyKey: record.key, input, signal });
  const answer = await Promise.race([ask(), aborted]);
  if (OUTCOMES.has(answer?.outcome) && (answer.outcome !== "several" || isSeveral(answer.receipts))) return answer;
  throw new TypeError(
    `Expected a lookup to answer { outcome: "happened" | "did-not-happen" | "cannot-tell" | "several" }; several are two receipts or more.`,
  );
}

function isSeveral(receipts: unknown): boolean {
  return Array.isArray(receipts) && receipts.length > 1;
}

function lookupFailed(record: StepRecord, error: unknown): Settlement {
  const { name, message } = recordFailure(error);
  if (record.lookups + 1 >= MAX_LOOKUPS) {
    return {
      to: "WAITING_HUMAN",
      actor: "lookup",
      reason: `${MAX_LOOKUPS} lookups failed, the last with ${name}: ${message}`,
      countLookup: true,
    };
  }
  const dueInMs = Math.min(1000 * 2 ** record.lookups, 15 * 60_000);
  return {
    to: "NEEDS_RECONCILIATION",
    actor: "lookup",
    reason: `the lookup failed with ${name}: ${message}`,
    dueInMs,
    countLookup: true,
    wake: dueInMs > IN_PROCESS_WAIT_MS,
  };
}

function storeReceipt(record: StepRecord, receipt: unknown, codec: Codec): Settlement {
  const actor = "lookup";
  try {
    const output = codec.encode(receipt, `receipt of ${record.name}`);
    return { to: "SUCCEEDED", actor, reason: "it happened", output };
  } catch (error) {
    if (!(error instanceof UnserializableError)) throw error;
    const failure = { name: "UnserializableError", message: error.message, code: UNSTORABLE };
    return { to: "WAITING_HUMAN", actor, reason: `it happened, but ${error.message}`, failure };
  }
}
