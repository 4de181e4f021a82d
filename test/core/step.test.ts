import { describe, expect, it } from "vitest";
import { isFinal, mayTransition, STATES, STATES_IN_DOUBT, sourcesOf } from "../../src/core/step.js";

describe("the transition table", () => {
  it("never leaves a final state but by compensation and redrive", () => {
    const ways = STATES.filter(isFinal).flatMap((from) =>
      STATES.filter((to) => mayTransition(from, to)).map((to) => `${from} -> ${to}`),
    );
    expect(ways).toEqual(["SUCCEEDED -> COMPENSATING", "FAILED_PERMANENT -> READY", "CANCELLED -> READY"]);
  });
  it("never cancels a step in doubt (G9)", () => {
    expect(mayTransition("NEEDS_RECONCILIATION", "CANCELLED")).toBe(false);
  });
  it("never lets an undo become the step it undoes (G8)", () => {
    expect(mayTransition("COMPENSATING", "NEEDS_RECONCILIATION")).toBe(false);
    expect(mayTransition("COMPENSATING", "SUCCEEDED")).toBe(false);
  });
  it("reaches every state, and can leave every state in doubt", () => {
    for (const state of STATES) if (state !== "READY" && state !== "RUNNING") expect(sourcesOf(state)).not.toEqual([]);
    for (const state of STATES_IN_DOUBT) expect(mayTransition(state, "SUCCEEDED")).toBe(true);
  });
  it("begins with a claim, with a read and its result, or with a question about another branch", () => {
    expect(STATES.filter((to) => mayTransition(null, to))).toEqual(["RUNNING", "SUCCEEDED", "WAITING_HUMAN"]);
  });
});
