// The step that the current code runs in, and the steps that one attempt at a node has opened: ordinals, open names,
// and the rule that a node returns only when all its steps are settled.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Artifacts } from "./artifact.js";
import { InputConflictError, NestedStepError, NotInDurableGraphError, StepUsageError } from "./errors.js";

/** What a step's `run` is given, and what `currentStep()` finds. */
export interface StepContext {
  /** Hand it to the provider: the same on every attempt at this step. */
  readonly idempotencyKey: string;
  /** 1 on the first try. */
  readonly attempt: number;
  /** Aborted by cancel, by the step's timeout, and when this run loses its thread. */
  readonly signal: AbortSignal;
  /** Big things: put here, they are named by a small reference in the step's output. */
  readonly artifacts: Artifacts;
}

const current = new AsyncLocalStorage<StepContext>();

export function runInStep<T>(context: StepContext, fn: () => T): T {
  return current.run(context, fn);
}

/**
 * The step that this code runs in: its idempotency key, attempt and signal. For use inside an existing tool or HTTP
 * client, however deep.
 *
 * @throws NotInDurableGraphError outside a step.
 */
export function currentStep(): StepContext {
  const step = current.getStore();
  if (step !== undefined) return step;
  throw new NotInDurableGraphError(
    "currentStep() was called outside a step. Call it inside the function of a durableTool, an operation, step.read or step.write.",
  );
}

/** A part of a node whose pauses may end with it. */
export interface ScopePart {
  /** Sets its calls apart from those beside it. */
  readonly name: string;
  /** Whether what left a step in it is caught where the part ends. */
  catches(error: unknown): boolean;
}

/** A step as its scope tells it apart. */
interface TrackedStep {
  readonly name: string;
  readonly key: string;
  readonly inputHash: string;
  readonly keyed: boolean;
  readonly entered?: boolean | undefined;
}

/** The steps of one attempt at one node. A retry of the node gets a new one, so ordinals start again (G26). */
export class StepScope {
  readonly #ordinals = new Map<string, number>();
  readonly #openNames = new Set<string>();
  readonly #inputs = new Map<string, string>();
  readonly #open = new Map<Promise<unknown>, string>();
  /** Steps of an earlier run that a call of this attempt stands for under another name, or that a person has explained. */
  readonly #explained = new Set<string>();
  #waiting = 0;
  #closed = false;
  #left: unknown;

  /**
   * @param prefix sets the calls inside one tool call apart from those of another in the same task
   * @param around the scope of the code that made this call: of a tool the node, of a graph's node the node that runs it
   */
  constructor(
    readonly node: string,
    readonly prefix = "",
    readonly around?: StepScope,
    readonly part?: ScopePart,
  ) {}

  /**
   * A step has left the graph (a pause, a drain): nothing more is opened here, and the node leaves with it. So does what is
   * around it, whose code may catch the pause. Calls beside it are left alone.
   */
  leave(error: unknown): void {
    // What ends a part is caught at its edge; code in it that catches it earlier gains nothing by that.
    if (this.part?.catches(error) === true) return;
    this.#left ??= error;
    this.around?.leave(error);
  }

  /** The scope of the node around a tool or a part of it. */
  get nodeScope(): StepScope {
    return this.prefix === "" || this.around === undefined ? this : this.around.nodeScope;
  }

  /** Has the scope wait for this at its end. It is no effect: it may begin after another call has left the graph. */
  async alongside<T>(name: string, begin: () => Promise<T>): Promise<T> {
    if (current.getStore() !== undefined) {
      throw new NestedStepError(`The ${name} was asked for inside a step's run. Ask before the step.`, {
        step: `${this.node}/${name}`,
      });
    }
    const work = begin();
    this.#open.set(work, name);
    try {
      return await work;
    } finally {
      this.#open.delete(work);
    }
  }

  /** Whether this is the scope, or one of what is called in it. */
  isWithin(scope: StepScope): boolean {
    return this === scope || this.around?.isWithin(scope) === true;
  }

  /** Throws what was left with before the code in the scope began. */
  enter(): void {
    if (this.#left !== undefined) throw this.#left;
  }

  /** The call site of the next call of `name`: the caller's own `key`, or the ordinal among calls of that name. */
  callSite(name: string, key: string | undefined): string {
    if (key !== undefined) return `key:${key}`;
    if (this.#openNames.has(name)) {
      throw new StepUsageError(
        `Two calls of the step "${name}" are open at once in node "${this.node}", and after a crash they could change places. ` +
          "Give each its own `key`, or await the first.",
        { step: `${this.node}/${name}` },
      );
    }
    const ordinal = this.#ordinals.get(name) ?? 0;
    this.#ordinals.set(name, ordinal + 1);
    return `${this.prefix}${ordinal}`;
  }

  /** Whether this attempt has come to the call, or somebody has said what became of it. */
  hasMet(name: string, callSite: string): boolean {
    const key = `${name}:${callSite}`;
    return this.#inputs.has(key) || this.#explained.has(key);
  }

  explain(name: string, callSite: string): void {
    this.#explained.add(`${name}:${callSite}`);
  }

  /** Waits until everything that was opened here has ended or waits as well: no other call comes before they do. */
  async whenQuiet(look: () => Promise<void>): Promise<void> {
    this.#waiting++;
    try {
      do await look();
      while (this.#open.size > this.#waiting);
    } finally {
      this.#waiting--;
    }
  }

  /** The ordinal among equal calls: equal requests may change places. */
  ordinal(of: string): string {
    const ordinal = this.#ordinals.get(of) ?? 0;
    this.#ordinals.set(of, ordinal + 1);
    return String(ordinal);
  }

  #assertMayOpen(name: string, entered: boolean): void {
    const step = `${this.node}/${name}`;
    if (this.#left !== undefined && !entered) throw this.#left;
    if (this.#closed && !entered) {
      throw new StepUsageError(
        `The step "${name}" was opened after its node "${this.node}" had returned. Await every step.`,
        { step },
      );
    }
    if (current.getStore() !== undefined) {
      throw new NestedStepError(
        `The step "${name}" was opened inside another step's run. Open it before or after; a crash in it would leave the outer one in doubt.`,
        { step },
      );
    }
  }

  /**
   * One key, one input: the same key with another input is a mistake on the first run already.
   *
   * @param step `entered`: its call began before any call beside it left the graph, and the scope waits for it
   */
  async track<T>({ name, key, inputHash, keyed, entered = false }: TrackedStep, run: () => Promise<T>): Promise<T> {
    this.#assertMayOpen(name, entered);
    const known = this.#inputs.get(key);
    if (known !== undefined && known !== inputHash) {
      throw new InputConflictError(
        `The step "${name}" in node "${this.node}" came twice under one key with different inputs (${known.slice(0, 12)}… and ${inputHash.slice(0, 12)}…). Give each input its own key.`,
        { step: `${this.node}/${name}` },
      );
    }
    this.#inputs.set(key, inputHash);
    if (!keyed) this.#openNames.add(name);
    const promise = run();
    this.#open.set(promise, name);
    try {
      return await promise;
    } finally {
      this.#open.delete(promise);
      if (!keyed) this.#openNames.delete(name);
    }
  }

  /**
   * Closes the scope when its node is done. A pause that the node's code caught leaves all the same. Waits for steps that
   * were left open, and says so when the node returned: an effect whose node has returned would be met by no later run.
   *
   * @param failed the node threw; its own error says more than the steps that it left open
   * @param forGood false where an edge of the node may still run: its steps are the same task's
   */
  async close(failed: boolean, forGood = true): Promise<void> {
    this.#closed = forGood;
    const left = [...this.#open];
    await Promise.allSettled(left.map(([promise]) => promise));
    if (this.#left !== undefined) throw this.#left;
    if (left.length === 0 || failed) return;
    throw new StepUsageError(
      `Node "${this.node}" returned while its steps ${left.map(([, name]) => `"${name}"`).join(", ")} were still open. Await every step.`,
      { step: this.node },
    );
  }
}
