// Steps are matched by identity, never by order. So a write under a new name would happen again after a deploy, although it had
// happened under the old one before the thread slept: where a task has a write that the code has not come to, and a new one is
// about to be made, a person says which it is, unless the rename is declared.
import type { StepScope } from "../../core/context.js";
import { ToolDriftError } from "../../core/errors.js";
import type { EarlierWrite, StepIntent } from "../../core/ledger.js";
import type { Place } from "../place.js";
import { askAt } from "../requestApproval.js";
import type { Run } from "../run/run.js";
import { sleep } from "../run/sleep.js";
import { hostAt } from "../runtime.js";

/** How often a write looks whether the calls beside it have ended. */
const LOOK_MS = 5;

/** The key under which a write was recorded by code that had another name for it; undefined for one that stands for itself. */
export async function recordedAs(place: Place, scope: StepScope, intent: StepIntent): Promise<string | undefined> {
  const { run, position } = place;
  // Without a new process there is no new code; calls in tools have the model's ids.
  if (intent.effect !== "write" || intent.kind !== "node" || !run.goesOn || scope.prefix !== "") return undefined;
  const earlier = await earlierWrites(run, position.checkpointNs);
  const unmet = () => earlier.filter(({ name, callSite }) => !scope.hasMet(name, callSite));
  if (unmet().length === 0) return undefined;
  const declared = unmet().find(({ name }) => run.settings.renames[name] === intent.name);
  if (declared !== undefined) return standsFor(scope, declared);
  const host = hostAt(place);
  await scope.whenQuiet(async () => {
    await sleep(LOOK_MS, place.signal);
    host.assertLive();
  });
  const open = unmet();
  if (open.length === 0 || (await run.steps.find(intent.key)) !== undefined) return undefined;
  const said = await ask(place, scope, intent, open);
  if (said === NEW) for (const { name, callSite } of open) scope.explain(name, callSite);
  const meant = open.find((write) => said === is(write));
  return meant === undefined ? undefined : standsFor(scope, meant);
}

const read = new WeakMap<Run, Map<string, Promise<readonly EarlierWrite[]>>>();

/** What earlier runs have written in a task, asked for once a run. */
function earlierWrites(run: Run, checkpointNs: string): Promise<readonly EarlierWrite[]> {
  const tasks = read.get(run) ?? new Map<string, Promise<readonly EarlierWrite[]>>();
  read.set(run, tasks);
  const known = tasks.get(checkpointNs) ?? run.steps.earlierWrites(run.ticket, checkpointNs);
  tasks.set(checkpointNs, known);
  // A ledger that was away may be back at the next write.
  known.catch(() => tasks.delete(checkpointNs));
  return known;
}

function standsFor(scope: StepScope, { key, name, callSite }: EarlierWrite): string {
  scope.explain(name, callSite);
  return key;
}

const NEW = "new";
const ABORT = "abort";
const is = ({ name, callSite }: EarlierWrite) => (callSite === "0" ? `is ${name}` : `is ${name} (${callSite})`);

async function ask(place: Place, scope: StepScope, intent: StepIntent, open: EarlierWrite[]): Promise<string> {
  const { name, inputHash } = intent;
  const choices = [...open.map(is), NEW, ABORT];
  const [first] = open;
  const args = {
    step: name,
    inputHash,
    recorded: open.map((write) => ({ step: write.name, inputHash: write.inputHash })),
    // A new name for the same input is most likely the same write.
    choice: open.length === 1 && first?.inputHash === inputHash ? is(first) : ABORT,
  };
  const recorded = open.map((write) => `"${write.name}"`).join(", ");
  const description =
    `Before this thread slept its node "${place.position.node}" had made the write ${recorded}. The code that runs it now has not come to ` +
    `that, and is about to make a write "${name}". Approve to go on as \`choice\` says, or change it: ` +
    `${open.map((write) => `${is(write)} (it is the same write under a new name: what is recorded stands)`).join("; ")}; ` +
    `${NEW} (it is another write: make it); ${ABORT} (end the run with an error; the thread stays as it is). Rejecting is "abort".`;
  const decision = await askAt(place, scope, {
    what: `The step "${name}"`,
    request: { action: `make ${name} where ${open.map((write) => write.name).join(", ")} was`, args, description },
    policy: { mayEdit: true },
    argsSchema: { ...CARD, properties: { ...CARD.properties, choice: { enum: choices } } },
  });
  const said = (decision.args as { choice?: string } | null)?.choice;
  if (decision.allowed && said !== undefined && said !== ABORT && choices.includes(said)) return said;
  throw new ToolDriftError(
    `The write "${name}" is new where ${recorded} is recorded, and ${decision.by} did not let it be made. Nothing was sent. ` +
      `Declare what became of it: durableGraph(graph, { renames: { ${JSON.stringify(first?.name)}: ${JSON.stringify(name)} } }).`,
    { threadId: place.position.threadId, step: `${place.position.node}/${name}` },
  );
}

const CARD = {
  type: "object",
  properties: { step: {}, inputHash: {}, recorded: {} },
  required: ["step", "inputHash", "recorded", "choice"],
  additionalProperties: false,
};
