// What the demo's parent and its worker say to each other over the IPC channel. JSON on the way, so no bigint and no Date.

export interface Job {
  readonly threadId: string;
  readonly question: string | undefined;
  readonly pages: number;
  readonly urls: readonly string[];
  readonly budgetUsd: number | undefined;
}

export interface StepMessage {
  readonly type: "step";
  readonly what: "recorded" | "replayed";
  readonly key: string;
  readonly name: string;
  readonly kind: "llm" | "tool" | "node";
  readonly effect: "read" | "write";
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

export type WorkerMessage =
  /** The worker has its imports and wants its job. */
  | { readonly type: "ready" }
  | { readonly type: "running"; readonly resumed: boolean }
  | StepMessage
  /** What the worker's process has in memory now. */
  | { readonly type: "memory"; readonly rssMb: number }
  /** Time must pass first; the worker waits and goes on by itself. */
  | { readonly type: "waiting"; readonly until: string; readonly reason: string }
  | { readonly type: "finished"; readonly report: string }
  /** The budget is used up; `report` is the path of what could be written. */
  | { readonly type: "out of budget"; readonly report?: string; readonly unread: number; readonly message: string }
  /** Only a person can answer what the thread waits for. */
  | { readonly type: "paused"; readonly question: string };
