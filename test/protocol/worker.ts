// A worker process of the model: the product's own step protocol on the product's own ledger, stopped at every point at
// which a real process can be stopped. It goes on only when the explorer says so, with what the explorer gives it.
import type { StepCall, StepHost } from "../../src/core/call.js";
import { executeStep } from "../../src/core/execute.js";
import type { BeginAnswer, RunTicket, StepLedger } from "../../src/core/ledger.js";
import type { LookupAnswer } from "../../src/core/lookup.js";

/** Where a worker stands. */
export type Parked =
  /** A statement that has not been sent. `perform` sends it, and may be called twice: that is a lost answer. */
  | { readonly at: "statement"; readonly name: string; perform(): Promise<unknown>; answer(value: unknown): void }
  /** A statement that was carried out; its answer has not arrived. */
  | { readonly at: "answer"; readonly name: string; readonly value: unknown; answer(value: unknown): void }
  /** The call of a step, before its request is sent. */
  | { readonly at: "call"; readonly key: string; readonly attempt: number; answer(end: CallEnd): void }
  /** A request that was sent. */
  | { readonly at: "request"; readonly key: string; readonly attempt: number; answer(end: CallEnd): void }
  | { readonly at: "lookup"; readonly key: string; answer(answer: LookupAnswer | Error): void }
  | { readonly at: "wait"; readonly dueAtMs: number; answer(): void };

export type CallEnd = { readonly receipt: string } | { readonly error: Error };

/** How a worker's work ended. */
export interface WorkEnd {
  readonly kind: "done" | "paused" | "due" | "lost" | "failed";
  readonly outputs: readonly string[];
  readonly error?: unknown;
}

class Left extends Error {
  constructor(readonly kind: "paused" | "due" | "lost") {
    super(kind);
  }
}

/** Longer waits leave the graph. */
const IN_PROCESS_WAIT_MS = 30_000;

export type MakeCall = (worker: Worker) => StepCall<string>;

export class Worker {
  parked: Parked | undefined;
  end: WorkEnd | undefined;
  /** Set when its own clock told it that its lease is over. */
  lost = false;
  /** Stopped for good: whatever it still does goes nowhere. */
  dead = false;
  readonly #controller = new AbortController();

  constructor(
    readonly name: string,
    readonly ticket: RunTicket,
    readonly ledger: StepLedger,
  ) {}

  /** Runs the steps, one after the other, up to its first stop. */
  start(calls: readonly MakeCall[]): void {
    const host = this.#host();
    const work = async () => {
      const outputs: string[] = [];
      try {
        for (const make of calls) outputs.push(await executeStep(make(this), host));
        this.#finish({ kind: "done", outputs });
      } catch (error) {
        this.#finish({ kind: error instanceof Left ? error.kind : "failed", outputs, error });
      }
    };
    void work();
  }

  /** It notices that it has lost its thread. */
  lose(): void {
    this.lost = true;
    this.#controller.abort(new Left("lost"));
  }

  /** What `run` of a step does here: it stops, and the explorer says how it ends. */
  call(key: string, attempt: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const answer = (end: CallEnd) => ("receipt" in end ? resolve(end.receipt) : reject(end.error));
      this.#park({ at: "call", key, attempt, answer });
    });
  }

  lookUp(key: string): Promise<LookupAnswer> {
    return new Promise((resolve, reject) => {
      const answer = (said: LookupAnswer | Error) => (said instanceof Error ? reject(said) : resolve(said));
      this.#park({ at: "lookup", key, answer });
    });
  }

  #finish(end: WorkEnd): void {
    if (!this.dead) this.end = end;
  }

  #park(parked: Parked): void {
    if (this.dead) return;
    if (this.parked !== undefined) throw new Error(`${this.name} stands at two points at once.`);
    this.parked = parked;
  }

  #statement<T>(name: string, perform: () => Promise<T>): Promise<T> {
    return new Promise((resolve) => {
      this.#park({ at: "statement", name, perform, answer: (value) => resolve(value as T) });
    });
  }

  /** The ledger with a stop before and after every statement. */
  #stopping(): StepLedger {
    const { ledger } = this;
    const stop = <T>(name: string, perform: () => Promise<T>) => this.#statement(name, perform);
    return {
      ...ledger,
      now: () => stop("now", () => ledger.now()),
      find: (key) => stop("find", () => ledger.find(key)),
      begin: (...args) => stop<BeginAnswer>("begin", () => ledger.begin(...args)),
      claimAgain: (...args) => stop<BeginAnswer>("claimAgain", () => ledger.claimAgain(...args)),
      record: (claim, outcome) => stop(`record ${outcome.to}`, () => ledger.record(claim, outcome)),
      recordLateSuccess: (...args) => stop("recordLateSuccess", () => ledger.recordLateSuccess(...args)),
      settle: (seen, settlement) => stop(`settle ${settlement.to}`, () => ledger.settle(seen, settlement)),
      noteDrift: (...args) => stop("noteDrift", () => ledger.noteDrift(...args)),
      // Renewals are the explorer's: it says for whom time passes.
      renew: () => new Promise(() => {}),
    };
  }

  #host(): StepHost {
    const ledger = this.#stopping();
    const assertLive = () => {
      if (this.lost) throw new Left("lost");
    };
    return {
      ledger,
      ticket: this.ticket,
      signal: this.#controller.signal,
      // No step of the model uses them.
      artifacts: () => undefined as never,
      open: new Map(),
      barrier: async () => {},
      relationTo: async () => "passed",
      overtakenWrite: async () => undefined,
      pause: () => {
        throw new Left("paused");
      },
      waitUntil: async (dueAt) => {
        const leftMs = dueAt.getTime() - (await ledger.now()).getTime();
        if (leftMs > IN_PROCESS_WAIT_MS) throw new Left("due");
        if (leftMs > 0) {
          await new Promise<void>((resolve) => {
            this.#park({ at: "wait", dueAtMs: dueAt.getTime(), answer: resolve });
          });
        }
        assertLive();
      },
      refused: () => {
        this.lose();
        throw new Left("lost");
      },
      assertLive,
      isControlFlow: () => false,
      mayRetry: () => true,
    };
  }
}

/** Lets a worker that was told to go on get to its next stop: between two stops it waits for nothing. */
export function settleDown(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
