// A step as a node of a graph makes one, identity and hashes included, in a graph that is not there: what the core and
// the ledger cost alone.
import { randomUUID } from "node:crypto";
import type { StepCall, StepHost } from "../../src/core/call.js";
import { canonicalJson, idempotencyKey, readKey, sha256 } from "../../src/core/key.js";
import type { StepIntent } from "../../src/core/ledger.js";
import type { Effect, StepKind, Usage } from "../../src/core/step.js";
import { LEDGER_PARTS, type Ledger } from "../../src/langgraph/ledger.js";

export interface BareStep {
  readonly kind: StepKind;
  readonly effect: Effect;
}

/** An hour: no renewal comes between the steps. */
const LEASE_MS = 3_600_000;

/** A run on its own thread, with nothing around it that a step could meet. */
export async function openHost(ledger: Ledger, threadId: string): Promise<StepHost> {
  const { steps, runs } = await ledger[LEDGER_PARTS].open();
  const answer = await runs.acquire(threadId, randomUUID(), LEASE_MS, "run");
  if (!("ticket" in answer)) throw new Error(`The thread ${threadId} is busy.`);
  const unexpected = (what: string) => () => {
    throw new Error(`A benchmark step ${what}.`);
  };
  return {
    ledger: steps,
    ticket: answer.ticket,
    signal: new AbortController().signal,
    open: new Map(),
    artifacts: unexpected("uses artifacts"),
    barrier: async () => {},
    relationTo: async () => "passed",
    overtakenWrite: async () => undefined,
    pause: unexpected("asked a person"),
    waitUntil: unexpected("waited"),
    refused: unexpected("lost its thread"),
    assertLive: () => {},
    isControlFlow: () => false,
    mayRetry: () => false,
  };
}

const USAGE: Usage = {
  model: "gpt-4o-mini",
  inputTokens: 1200,
  outputTokens: 300,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  cacheWriteTokens: 0,
  costNanoUsd: 360_000n,
  estimated: false,
};

export function stepCall(host: StepHost, { kind, effect }: BareStep, i: number): StepCall<object> {
  const { threadId, generation } = host.ticket;
  const name = "send";
  const taskId = randomUUID();
  const input = canonicalJson({ i });
  const inputHash = sha256(input);
  const parts = { namespace: "", threadId, generation, position: taskId, operation: name, callSite: "0" };
  const intent: StepIntent = {
    key: effect === "read" ? readKey(parts, inputHash) : idempotencyKey(parts),
    kind,
    effect,
    name,
    version: undefined,
    callSite: "0",
    position: {
      threadId,
      node: "step",
      taskId,
      checkpointNs: `step:${taskId}`,
      checkpointId: randomUUID(),
      superstep: i,
    },
    inputHash,
    input: kind === "llm" ? undefined : input,
    timeoutMs: 60_000,
    settleMs: 150_000,
    keyLifetimeMs: undefined,
    leaseMs: 30_000,
    likeness: effect === "write" ? BigInt.asIntN(64, BigInt(`0x${inputHash.slice(0, 16)}`)) : undefined,
  };
  const run = async () => ({ i, ok: true });
  return { intent, run, ...(kind === "llm" ? { usageOf: () => USAGE } : {}) };
}
