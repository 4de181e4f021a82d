// The identity and the intent of a step at a place: what its key is made of, and how long it may take.
import { canonicalJson, idempotencyKey, readKey, sha256 } from "../core/key.js";
import type { StepIntent } from "../core/ledger.js";
import type { Effect, StepKind, StepPosition } from "../core/step.js";
import type { Place } from "./place.js";

/** A minute: most HTTP clients' patience, and past every healthy API's slow minute. */
const TIMEOUT_MS = 60_000;
/** Long enough to be renewed at a third of it through a slow second, short enough to take over within a coffee. */
const STEP_LEASE_MS = 30_000;
/** On top of timeout and lease: for requests still on the wire and read sides that lag behind. */
const SETTLE_MARGIN_MS = 60_000;

/** The first 64 bits of a hash over everything about a write that an edit of the thread leaves as it was. */
function likenessOf(position: StepPosition, name: string, callSite: string, inputHash: string): bigint {
  const path = position.checkpointNs.replaceAll(/:[^|]*/g, "");
  const hash = sha256(canonicalJson([position.threadId, path, name, callSite, inputHash]));
  return BigInt.asIntN(64, BigInt(`0x${hash.slice(0, 16)}`));
}

/** What of a step its intent is made of. */
interface IntendedStep {
  readonly kind: StepKind;
  readonly effect: Effect;
  readonly name: string;
  readonly version?: string;
  readonly storeInput?: boolean;
  readonly options: {
    readonly key?: string;
    readonly timeoutMs?: number;
    readonly settleMs?: number;
    readonly keyLifetimeMs?: number;
  };
}

/** @param input canonical JSON */
export function intentOf({ run, position }: Place, step: IntendedStep, input: string, callSite: string): StepIntent {
  const { options, kind, effect, name, version } = step;
  const inputHash = sha256(input);
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const parts = {
    namespace: run.steps.namespace,
    threadId: position.threadId,
    generation: run.ticket.generation,
    // A business key stands in for the position, so that it means the same on every branch of the thread.
    position: options.key === undefined ? position.taskId : "key",
    operation: name,
    callSite,
  };
  return {
    key: effect === "read" ? readKey(parts, inputHash) : idempotencyKey(parts),
    kind,
    effect,
    name,
    version,
    callSite,
    position,
    inputHash,
    input: step.storeInput === false ? undefined : input,
    timeoutMs,
    settleMs: options.settleMs ?? timeoutMs + STEP_LEASE_MS + SETTLE_MARGIN_MS,
    keyLifetimeMs: options.keyLifetimeMs,
    leaseMs: STEP_LEASE_MS,
    likeness:
      effect === "write" && options.key === undefined ? likenessOf(position, name, callSite, inputHash) : undefined,
  };
}
