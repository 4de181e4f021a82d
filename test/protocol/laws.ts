// The laws of the step protocol, checked after every action of an exploration.
import { mayTransition, type StepState } from "../../src/core/step.js";
import type { Outside } from "./outside.js";
import type { Worker } from "./worker.js";

export interface StepRow {
  readonly key: string;
  readonly state: StepState;
  readonly effect: "read" | "write";
  readonly attempt: number;
  readonly claim_id: string | null;
  readonly doubt: boolean;
  readonly output: string | null;
  readonly leased: boolean | null;
  readonly drift_hash: string | null;
  readonly drift_decision: string | null;
  readonly history: readonly [n: number, attempt: number, from: StepState | null, to: StepState][];
}

type Rows = ReadonlyMap<string, StepRow>;

/** What one action may do to the ledger. `fenced` is who did it, when the thread was no longer that worker's. */
export function checkChange(before: Rows, after: Rows, fenced: Worker | undefined): void {
  for (const [key, row] of after) {
    const was = before.get(key);
    checkHistory(row);
    if (was === undefined) {
      if (fenced !== undefined) throw new Error("I5: a fenced worker recorded a new step.");
      continue;
    }
    if (row.attempt < was.attempt) throw new Error(`The attempt fell from ${was.attempt} to ${row.attempt}.`);
    if (row.attempt === was.attempt && row.claim_id !== was.claim_id) throw new Error("One attempt was claimed twice.");
    if (fenced !== undefined && row.attempt !== was.attempt) throw new Error("I5: a fenced worker claimed a step.");
    if (
      was.state === "SUCCEEDED" &&
      (row.state !== "SUCCEEDED" || row.output !== was.output || row.attempt !== was.attempt)
    ) {
      throw new Error(`I2: a step that had succeeded became ${row.state} ${row.attempt}.`);
    }
    if (was.history.some((event, i) => String(event) !== String(row.history[i])))
      throw new Error("The history was rewritten.");
  }
  for (const key of before.keys()) if (!after.has(key)) throw new Error("A step was deleted.");
}

/** One entry for every change, in order, each from where the one before it led, within the table of transitions. */
function checkHistory({ history, state, attempt }: StepRow): void {
  let at: StepState | null = null;
  history.forEach(([n, , from, to], i) => {
    if (n !== i + 1) throw new Error(`Entry ${i + 1} of the history has the number ${n}.`);
    // A receipt that came late does not say what the step was waiting for.
    if (from !== at && !(from === null && to === "SUCCEEDED"))
      throw new Error(`The history goes from ${at} on as from ${from}.`);
    // A note (another input came) leaves the state as it is.
    if (from !== to && !mayTransition(at, to)) throw new Error(`The history goes from ${at} to ${to}.`);
    at = to;
  });
  if (at !== state) throw new Error(`The history ends in ${at}, and the step is ${state}.`);
  const last = history.at(-1)?.[1] ?? 0;
  if (last > attempt) throw new Error(`The history knows attempt ${last}, the step is at ${attempt}.`);
}

const MAY_HAVE_HAPPENED: readonly StepState[] = ["RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN", "SUCCEEDED"];

/** What the ledger may say, given what is true outside. */
export function checkOutside(rows: Rows, outside: Outside, writtenOff: ReadonlySet<string>): void {
  for (const { key, state, effect, output, doubt } of rows.values()) {
    if (effect === "read") continue;
    const requests = outside.requestsOf(key);
    const zombies = requests.filter(({ zombie }) => zombie);
    const effects = outside.effectsOf(key);
    const byHolders = effects.filter(({ request }) => !request.zombie);
    // Declared exception: what a worker sends that was paused past its lease, only the provider can recognise.
    if (byHolders.length > 1 || effects.length > 1 + zombies.length)
      throw new Error(`I1: ${effects.length} effects, ${zombies.length} requests of zombies.`);
    const real = requests.some(({ zombie, state: is }) => !zombie && (is === "travelling" || is === "landed"));
    if (real && !MAY_HAVE_HAPPENED.includes(state) && !writtenOff.has(key))
      throw new Error(`G9: the ledger says ${state}, and a request of a holder is on its way or has arrived.`);
    if (doubt && !["RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN"].includes(state))
      throw new Error(`In doubt and ${state}.`);
    if (state === "SUCCEEDED" && !effects.some(({ receipt }) => JSON.stringify(receipt) === output))
      throw new Error(`Lost: SUCCEEDED with ${output}, which never happened.`);
  }
}
