// What a run makes do with when its budget runs low. The choice is a recorded step: a node that runs again after a crash
// must ask the same model, or its call would be another one, and be paid again.
import { type BudgetView, degradeLadder, type Step } from "langgraph-longhaul";

export interface Tier {
  readonly model: "full" | "cheap";
  /** How many hits a search asks for. */
  readonly searches: number;
  /** Model calls at once. */
  readonly concurrency: number;
}

/** As many calls at once as pages: a provider's rate limit should not be the first thing that a run meets. */
const FULL: Tier = { model: "full", searches: 50, concurrency: 8 };

const LOW: Tier = { model: "cheap", searches: 10, concurrency: 2 };
const TIERS = degradeLadder(FULL, { below: 0.2, use: LOW });

export async function chooseTier({ step, budget }: { step: Step; budget: BudgetView }): Promise<Tier> {
  if (!budget.limited) return FULL;
  return await step.read("tier", null, async () => {
    await budget.refresh();
    return budget.exceeded ? LOW : budget.pick(TIERS);
  });
}
