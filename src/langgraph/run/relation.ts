// How the place of a recorded step relates to the current one, read from the checkpoints between them.
import type { StepRecord } from "../../core/ledger.js";
import type { Place } from "../place.js";

/**
 * `passed`: the graph went on from it (a loop turn, an earlier message); `edited`: this place stands on the same
 * checkpoint, changed by an update, a new input or a fork; `forked`: it is on a branch that was left.
 */
export async function relationTo(
  record: StepRecord,
  { run, position, bases }: Place,
): Promise<"passed" | "edited" | "forked"> {
  const { checkpointNs, checkpointId } = record.position;
  let ns = around(checkpointNs);
  let parents = await run.saver?.parentsOf(position.threadId, ns, checkpointId);
  // A `task()` of the functional API stands on its caller's checkpoint, under a namespace that has none of its own.
  while (parents === undefined && ns !== "") {
    ns = around(ns);
    parents = await run.saver?.parentsOf(position.threadId, ns, checkpointId);
  }
  if (run.saver === undefined || parents === undefined) return "forked";
  const theirs: Readonly<Record<string, string>> = { ...parents, [ns]: checkpointId };
  // The outermost graph first: where the bases part, the histories do.
  for (const [level, ours] of [...bases].sort(([a], [b]) => a.length - b.length)) {
    const other = theirs[level];
    if (other === undefined) return "passed";
    if (other === ours) continue;
    const source = await run.saver.sourceAfter(position.threadId, level, other, ours);
    if (source === undefined) return "forked";
    // A loop checkpoint holds what the tasks of its parent wrote: the graph went on from there.
    return source === "loop" ? "passed" : "edited";
  }
  // The same checkpoints all the way: another task of the same superstep.
  return "passed";
}

function around(ns: string): string {
  return ns.slice(0, Math.max(0, ns.lastIndexOf("|")));
}

/**
 * The frontier (G7): on a checkpointer that is not ours an overtaken run can still store a checkpoint, which is then the
 * newest. A place that does not descend from the last write's shows it; a fork that was asked for is none.
 */
export async function overtakenWrite(place: Place): Promise<StepRecord | undefined> {
  const { run, position } = place;
  if (!run.unguarded || run.addressed) return undefined;
  const last = await run.steps.lastWrite(position.threadId);
  return last !== undefined && (await relationTo(last, place)) === "forked" ? last : undefined;
}
