// Which parts of its threads this process knows to be stored, so that it does not send them again. Bounded, and never relied
// on alone: what was removed since is noticed by the statement that would refer to it (hold_elements).
import type { Part } from "./references.js";

const MAX_THREADS = 64;
const MAX_DIGESTS = 200_000;

export class ThreadMemory {
  /** As of how many removals the parts are known; undefined before the first answer. */
  epoch: string | undefined;
  readonly #digests = new Set<string>();

  unknown(parts: readonly Part[]): Part[] {
    return parts.filter(({ digest }) => !this.#digests.has(digest));
  }

  learn(epoch: string, digests: Iterable<string>): void {
    if (this.epoch !== epoch || this.#digests.size > MAX_DIGESTS) this.#digests.clear();
    this.epoch = epoch;
    for (const digest of digests) this.#digests.add(digest);
  }

  forget(): void {
    this.epoch = undefined;
    this.#digests.clear();
  }
}

/** Of the threads that were used last. */
export class ThreadMemories {
  readonly #threads = new Map<string, ThreadMemory>();

  of(threadId: string): ThreadMemory {
    const memory = this.#threads.get(threadId) ?? new ThreadMemory();
    this.#threads.delete(threadId);
    this.#threads.set(threadId, memory);
    if (this.#threads.size > MAX_THREADS) {
      const [oldest] = this.#threads.keys();
      if (oldest !== undefined) this.#threads.delete(oldest);
    }
    return memory;
  }
}
