// The head of one namespace as one run knows it. It learns the head once, at its first read, and from then on only its
// own puts move it: a head that changed in between is another writer's, and the compare-and-set must see it.
import type { Sight } from "./gate.js";
import type { NewCheckpoint } from "./writes.js";

export class HeadPlace {
  /** The heads row: undefined as long as nothing was read. */
  headRow: string | null | undefined;
  /** The newest checkpoint. It differs from the row when PostgresSaver had the thread in between. */
  #head: string | null | undefined;
  #moved = false;
  /** Checkpoints that were asked for by their id: where a run that was sent into the past may start. */
  readonly #addressed = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(readonly ns: string) {}

  saw(sight: Sight): void {
    if (this.headRow === undefined) this.headRow = sight.headRow ?? null;
    if (sight.newestId !== undefined && this.#head === undefined) this.#head = sight.newestId;
    if (sight.askedId !== undefined && sight.askedId !== (this.#head ?? this.headRow))
      this.#addressed.add(sight.askedId);
  }

  learn(headRow: string | null, newest: string | null): void {
    if (this.headRow === undefined) this.headRow = headRow;
    if (this.#head === undefined) this.#head = newest;
  }

  needsHead(row: NewCheckpoint): boolean {
    return this.headRow === undefined || (this.#head === undefined && !this.#mayStartAnywhere(row));
  }

  /** Why this checkpoint may not be the next head; undefined when it may (G18). */
  problemWith(row: NewCheckpoint): string | undefined {
    if (row.id === this.#head || this.#mayStartAnywhere(row) || (row.parentId ?? null) === this.#head) return undefined;
    if (this.#moved && this.ns !== "") {
      return (
        `Two calls of one subgraph write the checkpoints of "${this.ns}" at the same time. A subgraph with \`checkpointer: true\` ` +
        "keeps one history for a thread and cannot run twice in parallel: compile it without that option."
      );
    }
    return (
      `A checkpoint for thread "${row.threadId}" follows ${row.parentId ?? "nothing"}, but the head is ${this.#head ?? "nothing"}. ` +
      "Another writer has moved the thread on; this run stores nothing more."
    );
  }

  /** Edits and forks may branch off anywhere; so may the first put of a run that was sent to a point in the past. */
  #mayStartAnywhere({ source, replay, parentId }: NewCheckpoint): boolean {
    if (source === "fork" || source === "update") return true;
    return !this.#moved && (replay || (parentId !== undefined && this.#addressed.has(parentId)));
  }

  /** The run was sent to this checkpoint, and it is not the head. */
  isPast(id: string): boolean {
    const head = this.#head ?? this.headRow;
    return !this.#moved && this.#addressed.has(id) && typeof head === "string" && head !== id;
  }

  moved(id: string): void {
    this.headRow = id;
    this.#head = id;
    this.#moved = true;
  }

  /** A put failed and may have been stored all the same: whoever loads next tells where the head is. */
  forget(): void {
    this.headRow = undefined;
    this.#head = undefined;
  }

  /** One put after the other: the next one needs to know what the one before came to. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Resolves when the puts so far have ended. */
  async settled(): Promise<void> {
    await this.#turn;
  }
}
