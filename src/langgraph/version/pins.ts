// Whether a thread may go on with the version of a tool that this build has. What means the same, or takes all that was taken,
// goes on and says so in the history. What may break pauses: a person says whether the thread moves on, keeps the version that
// it was begun with, leaves the call out, or ends. Never a silent upgrade.
import type { Decision } from "../../core/approval.js";
import type { StepScope } from "../../core/context.js";
import { ToolDriftError } from "../../core/errors.js";
import {
  compareTools,
  type Drift,
  describeDrift,
  type PinMove,
  type Pinned,
  type PinState,
  type ToolShape,
} from "../../core/version.js";
import { isControlFlow } from "../leave.js";
import { leftBy } from "../leftBy.js";
import type { Place } from "../place.js";
import { askAt } from "../requestApproval.js";
import { hostAt } from "../runtime.js";

/** How a call is made after the look at the pin. */
export type PinnedUse =
  | { readonly use: "this"; readonly movedFrom: string | undefined }
  | { readonly use: "older"; readonly version: string }
  | { readonly use: "none"; readonly by: string };

/** What a person can say. */
const CHOICES = {
  migrate: "go on with the new version, through its `migrate`",
  keep: "keep the version that the thread was begun with",
  accept: "go on with the new version as it is",
  skip: "leave this call out",
  abort: "end the run with an error; the thread stays as it is",
} as const;
type Choice = keyof typeof CHOICES;

export interface PinnedCall {
  readonly pinned: Pinned & { readonly shape: ToolShape };
  /** The version has a `migrate`. */
  readonly migrates: boolean;
  /** The call can be left out: the model is told so. */
  readonly skippable: boolean;
}

/**
 * Looks whether the thread may use this version, once a run; asks a person where it may not.
 *
 * @throws ToolDriftError for a version that is registered with another meaning, and where a person ended it.
 */
export async function usePinned(place: Place, scope: StepScope, asked: PinnedCall): Promise<PinnedUse> {
  try {
    return await usedAs(place, scope, asked);
  } catch (error) {
    const left = leftBy(place, error);
    if (isControlFlow(left)) scope.leave(left);
    throw left;
  }
}

async function usedAs(place: Place, scope: StepScope, asked: PinnedCall): Promise<PinnedUse> {
  const { pinned: tool } = asked;
  hostAt(place).assertLive();
  const state = await stateOf(place, tool);
  refuseChanged(tool, state);
  if (state.version === tool.version) return { use: "this", movedFrom: state.movedFrom };
  const older = place.run.settings.olderTools.has(olderKey(tool.name, state.version));
  if (state.keptAgainst === tool.version && older) return { use: "older", version: state.version };
  const drift = compareTools({ version: state.version, shape: state.shape }, tool);
  const move = (verdict: PinMove["verdict"], by: string) =>
    moved(place, {
      kind: tool.kind,
      name: tool.name,
      from: state.version,
      to: tool.version,
      verdict,
      detail: describeDrift(drift),
      by,
    });
  if (drift.verdict !== "breaking") {
    await move(drift.verdict, "run");
    return { use: "this", movedFrom: state.movedFrom };
  }
  const { choice, by } = await ask(place, scope, asked, { state, drift, older });
  if (choice === "skip") return { use: "none", by };
  if (choice === "keep") {
    await move("kept", by);
    return { use: "older", version: state.version };
  }
  if (choice === "abort") {
    throw new ToolDriftError(
      `The thread was begun with version ${state.version} of "${tool.name}", and ${by} did not let it go on with ${tool.version}: ${describeDrift(drift)}. Nothing was called.`,
      { threadId: place.run.threadId, step: `${place.position.node}/${tool.name}` },
    );
  }
  await move(choice === "migrate" ? "migrated" : "accepted", by);
  return { use: "this", movedFrom: choice === "migrate" ? state.version : state.movedFrom };
}

/** Looks at the values that the caller pinned, once a run, before its first step. */
export async function useValues(place: Place, scope: StepScope): Promise<void> {
  const { run } = place;
  for (const [name, version] of Object.entries(run.settings.pins)) {
    const pinned = { kind: "value", name, version, shape: VALUE } as const;
    await usePinned(place, scope, { pinned, migrates: false, skippable: false });
  }
}

/** A value has nothing but its text to compare. */
const VALUE: ToolShape = { effect: "read" };

/** @internal Under which the tools of other versions are known. */
export function olderKey(name: string, version: string): string {
  return `${name}@${version}`;
}

function stateOf({ run }: Place, pinned: Pinned): Promise<PinState> {
  const key = olderKey(pinned.name, pinned.version);
  const known = run.pinned.get(key);
  if (known !== undefined) return known;
  const reading = run.pins.pin(run.ticket, pinned).then((state) => {
    if ("version" in state) return state;
    run.refused(state);
    throw run.leave();
  });
  run.pinned.set(key, reading);
  // A ledger that was away may be back at the next call.
  reading.catch(() => run.pinned.delete(key));
  return reading;
}

async function moved({ run }: Place, move: PinMove): Promise<void> {
  await run.pins.move(run.ticket, move);
  run.pinned.delete(olderKey(move.name, move.to));
}

/** One version has one meaning: threads that sleep rely on it. */
function refuseChanged(tool: PinnedCall["pinned"], { registered }: PinState): void {
  if (registered === undefined || registered.fingerprint === tool.fingerprint) return;
  const drift = compareTools({ version: tool.version, shape: registered.shape }, tool);
  throw new ToolDriftError(
    `"${tool.name}" ${tool.version} is registered with another meaning: ${describeDrift(drift)}. Give the changed one a new version; nothing was called.`,
    { step: tool.name },
  );
}

async function ask(
  place: Place,
  scope: StepScope,
  { pinned: tool, migrates, skippable }: PinnedCall,
  { state, drift, older }: { state: PinState; drift: Drift; older: boolean },
): Promise<{ choice: Choice; by: string }> {
  const offered = (Object.keys(CHOICES) as Choice[]).filter(
    (choice) => (choice !== "migrate" || migrates) && (choice !== "keep" || older) && (choice !== "skip" || skippable),
  );
  const [choice = "abort"] = offered;
  const args = {
    tool: tool.name,
    from: state.version,
    to: tool.version,
    differences: drift.differences.map(
      ({ path, about, before, after, verdict }) => `${verdict}: ${path} ${about}: ${before} -> ${after}`,
    ),
    choice,
  };
  const description =
    `This thread was begun with version ${state.version} of "${tool.name}", and the build that runs it has ${tool.version}, which may not take what the thread holds. ` +
    `Approve to go on as \`choice\` says, or change it: ${offered.map((one) => `${one} (${CHOICES[one]})`).join("; ")}. Rejecting is "abort".`;
  const decision: Decision = await askAt(place, scope, {
    what: `The pinned tool "${tool.name}"`,
    request: { action: `use another version of ${tool.name}`, args, description },
    policy: { mayEdit: true },
    argsSchema: { ...CARD, properties: { ...CARD.properties, choice: { enum: offered } } },
  });
  if (!decision.allowed) return { choice: "abort", by: decision.by };
  const said = (decision.args as { choice?: Choice } | null)?.choice;
  return { choice: said !== undefined && offered.includes(said) ? said : "abort", by: decision.by };
}

const CARD = {
  type: "object",
  properties: { tool: {}, from: {}, to: {}, differences: {} },
  required: ["tool", "from", "to", "differences", "choice"],
  additionalProperties: false,
};
