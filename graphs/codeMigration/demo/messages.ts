// What the demo's parent and its worker say to each other over the IPC channel. JSON on the way, so no bigint and no Date.
import type { Outcome } from "../outcome.js";
import type { RefusedProposal } from "../state.js";

export interface Job {
  readonly threadId: string;
  readonly package: string | undefined;
  readonly repository: string | undefined;
  readonly budgetUsd: number | undefined;
}

export interface StepMessage {
  readonly type: "step";
  readonly what: "recorded" | "replayed";
  readonly key: string;
  readonly name: string;
  readonly kind: "llm" | "tool" | "node";
  readonly effect: "read" | "write";
  readonly costUsd: number;
}

export interface Tests {
  readonly passed: number;
  readonly failed: number;
}

export interface Finished {
  readonly type: "finished";
  readonly outcome: Outcome;
  readonly subject: string | null;
  readonly base: string | null;
  readonly tree: string | null;
  readonly files: number;
  readonly refusals: readonly RefusedProposal[];
  readonly repairs: number;
  readonly testsBefore: Tests | null;
  readonly testsAfter: Tests | null;
  readonly patch: string | null;
  readonly pullRequest: string | null;
}

export type WorkerMessage =
  /** The worker has its imports and wants its job. */
  | { readonly type: "ready" }
  | { readonly type: "running"; readonly resumed: boolean }
  | StepMessage
  /** Time must pass first; the worker waits and goes on by itself. */
  | { readonly type: "waiting"; readonly until: string; readonly reason: string }
  /** A request for approval is open; the worker waits for a word that it was decided. */
  | { readonly type: "asking" }
  | Finished
  /** Only a person can answer what the thread waits for. */
  | { readonly type: "paused"; readonly question: string };
