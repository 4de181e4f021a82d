// An edit is not a fork of the world (G6): when state was edited, an input sent again or a branch forked, the same write
// has a new identity, but the world has seen the effect. Before such a write a person says: reuse the result, or do it
// again. A loop that does the same twice is no sibling: the checkpoint after the first one lies between.
import type { StepCall, StepHost } from "./call.js";
import type { StepRecord } from "./ledger.js";

/** States in which a write has had its effect, or may have. */
const HAD_EFFECT = new Set(["SUCCEEDED", "RUNNING", "NEEDS_RECONCILIATION", "WAITING_HUMAN"]);

/**
 * Looks whether one of the writes that are alike did this on another branch, and if so records the step as waiting for
 * a person. True when there is none, and the step may be claimed.
 */
export async function standsAlone<O>(call: StepCall<O>, host: StepHost, alike: readonly string[]): Promise<boolean> {
  for (const key of alike) {
    const record = await host.ledger.find(key);
    if (record === undefined || !HAD_EFFECT.has(record.state)) continue;
    const relation = await host.relationTo(record);
    if (relation === "passed") continue;
    if (relation === "forked" && ((await host.branch?.())?.onFork ?? call.onFork) === "run") continue;
    // A prune that removed the checkpoint under it has noted how it stood, at the same moment.
    if ((await host.ledger.find(key))?.passed) continue;
    await host.ledger.beginWaiting(host.ticket, call.intent, key);
    return false;
  }
  return true;
}

/** Asks whether another branch's result is reused. */
export function askAboutSibling(host: StepHost, record: StepRecord): never {
  const step = `${record.position.node}/${record.name}`;
  const message =
    `The write "${step}" may have been done on another branch: the thread was edited, forked or overtaken by another writer since, or its input sent again (step ${record.siblingKey}). ` +
    `Reuse its result (settle it first, if it is in doubt) or do it again: longhaul reconcile settle ${record.key} --reuse | --run-again`;
  return host.pause([{ record, question: { kind: "SIBLING_EFFECT", message } }]);
}
