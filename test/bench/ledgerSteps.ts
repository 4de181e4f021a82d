// P1 and P2: the ledger alone. Steps one after the other through the core, on the real PostgreSQL, in a graph that is
// not there; against `pair` of the same rounds.
import { randomUUID } from "node:crypto";
import type { StepCall, StepHost } from "../../src/core/call.js";
import { executeStep } from "../../src/core/execute.js";
import { canonicalJson, idempotencyKey, readKey, sha256 } from "../../src/core/key.js";
import type { StepIntent } from "../../src/core/ledger.js";
import type { Effect, StepKind, Usage } from "../../src/core/step.js";
import { LEDGER_PARTS, type Ledger } from "../../src/langgraph/ledger.js";
import { openLedger } from "../../src/openLedger.js";
import { openPair, PAIR } from "./floor.js";
import { measure } from "./measure.js";
import type { BenchRun, Result } from "./result.js";
import { type Contestant, compare, interleave } from "./rounds.js";

/** A round is 1000 steps, in slices. */
const SLICES = 10;
const STEPS_PER_SLICE = 100;
const WARM = 200;

interface Target {
  readonly id: string;
  readonly what: string;
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly ratio: number;
  readonly writeTx: number;
  readonly walBytes?: number;
}

const TARGETS: readonly Target[] = [
  { id: "P1", what: "write step, ledger alone", kind: "node", effect: "write", ratio: 1.5, writeTx: 2, walBytes: 900 },
  { id: "P2.read", what: "read step, ledger alone", kind: "node", effect: "read", ratio: 0.9, writeTx: 1 },
  { id: "P2.model", what: "model step, ledger alone", kind: "llm", effect: "read", ratio: 1.6, writeTx: 2 },
];

export async function ledgerSteps(bench: BenchRun): Promise<Result[]> {
  const targets = TARGETS.filter(({ id }) => bench.wants(id));
  if (targets.length === 0) return [];
  bench.note(`ledger alone: ${SLICES * STEPS_PER_SLICE} sequential steps of each kind, ${bench.rounds} rounds`);
  const pair = await openPair(bench.server, STEPS_PER_SLICE);
  const ledger = openLedger({ url: await bench.server.createDatabase() });
  try {
    const ours = await Promise.all(targets.map((target) => openSteps(bench, ledger, target)));
    const figures = await interleave([pair, ...ours], bench.rounds * SLICES);
    return targets.map((target) => {
      const compared = compare(figures, target.id, PAIR);
      return {
        id: target.id,
        what: target.what,
        unit: "ms/step",
        against: PAIR,
        target: target.ratio,
        targetOf: "ratio",
        rounds: bench.rounds,
        writeTxTarget: target.writeTx,
        ...(target.walBytes === undefined ? {} : { walBytesTarget: target.walBytes }),
        pass: meets(target, compared),
        ...compared,
      };
    });
  } finally {
    await pair.close();
    await ledger.close();
  }
}

/** A hundredth of a transaction a step is the server's own housekeeping. */
function meets(target: Target, got: { ratio: number; writeTxPerStep: number; walBytesPerStep: number }): boolean {
  const { ratio, writeTx, walBytes = Number.POSITIVE_INFINITY } = target;
  return got.ratio <= ratio && got.writeTxPerStep <= writeTx + 0.01 && got.walBytesPerStep <= walBytes;
}

async function openSteps({ server }: BenchRun, ledger: Ledger, target: Target): Promise<Contestant> {
  const host = await openHost(ledger, target.id);
  let done = 0;
  const work = async (count: number) => {
    for (const end = done + count; done < end; done++) await executeStep(stepCall(host, target, done), host);
  };
  await work(WARM);
  return { name: target.id, run: () => measure(server, STEPS_PER_SLICE, () => work(STEPS_PER_SLICE)) };
}

/** An hour: no renewal comes between the steps. */
const LEASE_MS = 3_600_000;

/** A run on its own thread, with nothing around it that a step could meet. */
async function openHost(ledger: Ledger, threadId: string): Promise<StepHost> {
  const { steps, runs } = await ledger[LEDGER_PARTS].open();
  const answer = await runs.acquire(threadId, randomUUID(), LEASE_MS, "run");
  if ("busy" in answer) throw new Error(`The thread ${threadId} is busy.`);
  const unexpected = (what: string) => () => {
    throw new Error(`A benchmark step ${what}.`);
  };
  return {
    ledger: steps,
    ticket: answer.ticket,
    signal: new AbortController().signal,
    open: new Map(),
    barrier: async () => {},
    relationTo: async () => "passed",
    overtakenWrite: async () => undefined,
    pause: unexpected("asked a person"),
    waitUntil: unexpected("waited"),
    lost: unexpected("lost its thread"),
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
  costNanoUsd: 360_000n,
};

/** A step as a node of a graph makes one, identity and hashes included. */
function stepCall(host: StepHost, { kind, effect }: Target, i: number): StepCall<object> {
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
  };
  const run = async () => ({ i, ok: true });
  return { intent, run, ...(kind === "llm" ? { usageOf: () => USAGE } : {}) };
}
