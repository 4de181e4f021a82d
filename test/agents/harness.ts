// What the tests of agents share: a database, a model that does what it is told, and the world outside.
import type { BaseMessage } from "@langchain/core/messages";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { stepsOfThread } from "../../src/postgres/stepRows.js";
import { databaseOf, type TestDatabase, testDatabase } from "../support/database.js";
import { type World as Outside, startWorld } from "../support/world.js";
import { type Plan, type PlannedModel, planned, plannedModel, TOKENS } from "./plannedModel.js";

export interface AgentHarness {
  readonly db: TestDatabase;
  readonly outside: Outside;
  readonly model: PlannedModel;
  world(thread: string): { readonly thread: string; readonly modelUrl: string; readonly worldUrl: string };
}

/** Call it once, at the top of a test file. */
export function agentHarness(): AgentHarness {
  const harness = {
    world: (thread: string) => ({ thread, modelUrl: harness.model.url, worldUrl: harness.outside.url }),
  } as AgentHarness;
  beforeAll(async () => {
    const [db, outside, model] = await Promise.all([testDatabase(), startWorld(), plannedModel()]);
    Object.assign(harness, { db, outside, model });
  });
  afterAll(() => Promise.all([harness.outside.close(), harness.model.close()]));
  beforeEach(() => {
    const { outside, model } = harness;
    outside.beforeAnswer = () => {};
    model.beforeAnswer = () => undefined;
    model.usage = () => TOKENS;
    model.requests.length = 0;
  });
  return harness;
}

export const ask = (plan: Plan) => ({ messages: [{ role: "user" as const, content: planned(plan) }] });

export const thread = (thread_id: string) => ({ configurable: { thread_id }, recursionLimit: 60 });

/** The recorded model calls of a thread, in order. */
export async function modelStepsOf(db: TestDatabase, threadId: string) {
  const steps = await stepsOfThread(await databaseOf(db.openLedger()), threadId);
  return steps.map(({ record }) => record).filter(({ name }) => name === "model");
}

/** Its state, as far as tests look at it. */
export interface Outcome {
  readonly messages: readonly BaseMessage[];
  readonly __interrupt__?: readonly { readonly id: string; readonly value: Record<string, unknown> }[];
}

export const outcome = (result: unknown): Outcome => result as Outcome;
export const lastText = (result: unknown): string | undefined => outcome(result).messages.at(-1)?.text;
