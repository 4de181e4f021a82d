// A node runs again from its top when what it asked is answered: what it did before without recording it, it does again. Said
// once a node, while people develop; in production nobody reads it.
import type { StepScope } from "../../core/context.js";

/** Nodes that were told of, by name and call. */
const told = new Set<string>();

export class RepeatedCalls {
  readonly #open = new Map<string, { readonly scope: StepScope; readonly what: string }>();
  readonly #done = new WeakMap<StepScope, Set<string>>();

  /** A call that no record stands for begins. */
  begins(id: string, scope: StepScope | undefined, what: string): void {
    if (scope !== undefined) this.#open.set(id, { scope: scope.nodeScope, what });
  }

  /** It was made. */
  ends(id: string): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    const done = this.#done.get(call.scope) ?? new Set();
    this.#done.set(call.scope, done.add(call.what));
  }

  /** It failed, or is what asks. */
  fails(id: string): void {
    this.#open.delete(id);
  }

  /** The node leaves by a question. */
  asks(scope: StepScope): void {
    for (const what of this.#done.get(scope) ?? []) {
      const key = `${scope.node}/${what}`;
      if (process.env["NODE_ENV"] === "production" || told.has(key)) continue;
      told.add(key);
      process.emitWarning(
        `Node "${scope.node}" called ${what}, which is not recorded, and then asked a person. When that is answered the node runs ` +
          "again from its top, and so does the call. Make it a durableTool or a durableModel, or ask first.",
        { code: "LONGHAUL_REPEATED_CALL" },
      );
    }
  }
}
