// What a worker tells, and the seam between finding a thread due and having it run: in this process, by a queue, or on a
// LangGraph server.
import type { DueThread } from "../postgres/due.js";

/** One thing that a worker did or found. */
export type WorkerEvent =
  /** A sweep found something: how much, by the name of the sweep. */
  | { readonly type: "swept"; readonly found: Readonly<Record<string, number>> }
  /** A due thread is being run, or its run was ordered. */
  | {
      readonly type: "woke";
      readonly threadId: string;
      readonly graph: string | undefined;
      readonly reason: string;
      readonly lateMs: number;
    }
  /** Its run was left to a queue or a server. */
  | { readonly type: "queued"; readonly threadId: string }
  /** Its run ended: there is nothing left to do, or it waits for a person. */
  | { readonly type: "done"; readonly threadId: string; readonly as: "done" | "waiting" }
  /** It runs again at that time, by the ledger's clock. */
  | { readonly type: "due"; readonly threadId: string; readonly dueAt: string }
  /** Another run has it. Its wake stays. */
  | { readonly type: "busy"; readonly threadId: string }
  /** It left for another reason, which `longhaul runs` shows. */
  | { readonly type: "left"; readonly threadId: string; readonly kind: string }
  | { readonly type: "failed"; readonly threadId: string; readonly error: string }
  /** Threads of a graph are due that this worker was not given. */
  | { readonly type: "unknown-graph"; readonly threadId: string; readonly graph: string }
  /** Whether PostgreSQL rings, or the poll alone finds what is due. */
  | { readonly type: "listening" | "polling" };

/** What became of a wake. */
export type WakeOutcome =
  /** The thread ran here, to wherever it got. */
  | { readonly to: "ran" }
  /** Something else will run it; the wake is claimed until that run starts. */
  | { readonly to: "queued" }
  /** Another run has it: the wake is tried again then. */
  | { readonly to: "busy"; readonly againInMs: number };

/** What a waker may ask of the worker around it. */
export interface WakerHost {
  readonly concurrency: number;
  /** Runs a thread in this process to wherever it gets. Never rejects. */
  run(thread: Pick<DueThread, "threadId" | "graph">): Promise<WakeOutcome>;
  onError(error: unknown, threadId?: string): void;
}

/** How due threads get to run. */
export interface Waker {
  readonly name: string;
  /** For how long a claimed wake is left alone, until the run must have started. Milliseconds. */
  readonly claimMs: number;
  /** Needs no graph in this process. */
  readonly elsewhere: boolean;
  start?(host: WakerHost): Promise<void>;
  wake(thread: DueThread): Promise<WakeOutcome>;
  /** Takes nothing more. */
  stop?(): Promise<void>;
  /** After the runs here have ended. */
  close?(): Promise<void>;
}
