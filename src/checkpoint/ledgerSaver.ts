// LedgerSaver: LangGraph's PostgresSaver on the same tables, mended where it loses state. Versions are unique, so a
// fork never meets another branch's values; the head is one row, so the newest checkpoint does not depend on workers'
// clocks; a run's writes are refused once the thread is another's; and each write is one statement. This file speaks
// LangGraph's contract; rows.ts reads, the gates write.
import { randomInt } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointTuple,
  DeltaChannelHistory,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import type pg from "pg";
import { InvalidOptionError, ThreadBusyError, UnserializableError } from "../core/errors.js";
import { type Hindrance, requestDeletion } from "../postgres/deletions.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { addressOf } from "./address.js";
import { loadDeltaHistory } from "./deltaHistory.js";
import { EMPTY_TYPE, type EncodedValue, encodeValue } from "./elements.js";
import { OpenGate, type WriteGate } from "./gate.js";
import { parentsOf, sourceAfter } from "./lineage.js";
import { writeMetadata } from "./metadata.js";
import { purgeThread } from "./purge.js";
import type { Part } from "./references.js";
import { type Loaded, loadCheckpoints } from "./rows.js";
import type { RunBinding } from "./runBinding.js";
import { RunGate } from "./runGate.js";
import { byId, listing, newest } from "./selection.js";
import { awaitInDatabase, type CheckpointPair } from "./storedIds.js";
import { ThreadMemories } from "./threadMemory.js";
import { toTuple } from "./tuple.js";
import type { NewCheckpoint } from "./writes.js";

/**
 * A checkpointer for LangGraph that keeps forks, time travel and concurrent writers apart. By itself it stores
 * whatever it is given as long as no run has the thread, and throws ThreadBusyError otherwise; `forRun` gives the
 * view that a run writes through.
 */
export class LedgerSaver extends PostgresSaver {
  readonly #open: () => Promise<PooledDatabase>;
  readonly #schema: string;
  readonly #gate: WriteGate;
  readonly #memories = new ThreadMemories();
  readonly #run: RunGate | undefined;

  /**
   * @param open Opens the database: connects, migrates, calls `setupCheckpoints`. Called before every use, so it must
   *   remember its answer, and never before the first.
   * @param schema The schema of the ledger and the checkpoints, unquoted.
   */
  constructor(open: () => Promise<PooledDatabase>, schema: string, run?: RunBinding) {
    super(lazyPool(open), undefined, { schema });
    this.#open = open;
    this.#schema = schema;
    this.#run = run === undefined ? undefined : new RunGate(open, run, this.#memories);
    this.#gate = this.#run ?? new OpenGate(open, this.#memories);
  }

  /**
   * The view of this saver that one run writes through, on the same connections. Every write proves that the thread
   * is still the run's; when it is not, the run is told by `lose`, the graph is left by GraphDrained, and everything
   * the run sends afterwards is dropped.
   */
  forRun(run: RunBinding): LedgerSaver {
    return new LedgerSaver(this.#open, this.#schema, run);
  }

  /** True when the last superstep of the run's root graph asked a person something. Always false outside a run. */
  get interrupted(): boolean {
    return this.#run?.interrupted ?? false;
  }

  /**
   * The durability barrier: resolves when every checkpoint is stored.
   *
   * @throws DurabilityBarrierError at once when one never will be, otherwise at the deadline.
   */
  async awaitStored(threadId: string, pairs: readonly CheckpointPair[], deadlineMs: number): Promise<void> {
    if (this.#run !== undefined) return this.#run.stored.awaitStored(threadId, pairs, deadlineMs);
    return awaitInDatabase(this.#open, threadId, pairs, deadlineMs);
  }

  /** The checkpoints of the enclosing graphs that a checkpoint belongs to, by namespace. */
  async parentsOf(threadId: string, ns: string, id: string): Promise<Readonly<Record<string, string>> | undefined> {
    return parentsOf(await this.#open(), threadId, ns, id);
  }

  /** The source of the checkpoint that followed `ancestorId` on the way to `id`; undefined when it is no ancestor. */
  async sourceAfter(threadId: string, ns: string, ancestorId: string, id: string): Promise<string | undefined> {
    return sourceAfter(await this.#open(), threadId, ns, ancestorId, id);
  }

  /** Not needed: the tables are made when the database is opened. */
  override async setup(): Promise<void> {
    await this.#open();
  }

  /** Whole numbers as before, and after the point a random part: two branches never give one version to two values. */
  override getNextVersion(current: number | undefined): number {
    if (typeof current === "string") {
      throw new InvalidOptionError(
        `This thread has text as channel versions (${current}), which only LangGraph for Python writes. It cannot go on here.`,
      );
    }
    return Math.floor(current ?? 0) + 1 + (1 + randomInt(999_999_998)) / 1e9;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId, ns = "", id } = addressOf(config);
    if (threadId === undefined) return undefined;
    await this.#gate.settled(threadId, ns);
    const database = await this.#open();
    const loaded = await loadCheckpoints(database, id === undefined ? newest(threadId, ns) : byId(threadId, ns, id));
    const { checkpoints, headRow, parts } = loaded;
    const [stored] = checkpoints;
    this.#gate.saw({
      threadId,
      ns,
      headRow,
      askedId: id,
      foundIds: checkpoints.map((checkpoint) => checkpoint.id),
      ...(id === undefined ? { newestId: stored?.id ?? null } : {}),
    });
    this.#learn(loaded);
    return stored === undefined ? undefined : toTuple(database, this.serde, stored, parts.get(threadId));
  }

  /** What was loaded is stored: a run that goes on from it sends none of it again. */
  #learn({ parts, epochs }: Loaded): void {
    for (const [threadId, texts] of parts) {
      const epoch = epochs.get(threadId);
      if (epoch !== undefined) this.#memories.of(threadId).learn(epoch, texts.keys());
    }
  }

  /** In one round trip, however long the way to the nearest stored value is. */
  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { threadId, ns = "", id } = addressOf(options.config);
    if (threadId === undefined) return super.getDeltaChannelHistory(options);
    await this.#gate.settled(threadId, ns);
    return loadDeltaHistory(await this.#open(), this.serde, { threadId, ns, id, channels: options.channels });
  }

  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { threadId, ns, id } = addressOf(config);
    const { before, filter, limit } = options;
    const selection = listing({
      threadId,
      ns,
      id,
      filter,
      limit,
      before: before === undefined ? undefined : addressOf(before),
    });
    if (threadId !== undefined && ns !== undefined) await this.#gate.settled(threadId, ns);
    const database = await this.#open();
    const { checkpoints, headRow, parts } = await loadCheckpoints(database, selection);
    if (threadId !== undefined && ns !== undefined) {
      const foundIds = checkpoints.map((checkpoint) => checkpoint.id);
      this.#gate.saw({ threadId, ns, headRow, askedId: undefined, foundIds });
    }
    // One after the other, so that a long history does not stand in memory twice.
    for (const stored of checkpoints) yield await toTuple(database, this.serde, stored, parts.get(stored.threadId));
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, ns = "" } = addressOf(config);
    if (threadId === undefined)
      throw new InvalidOptionError("Expected `configurable.thread_id` in the config of a checkpoint.");
    await this.#gate.put(threadId, ns, this.#serialize(config, checkpoint, metadata, newVersions));
    return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
  }

  async #serialize(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<NewCheckpoint> {
    const { threadId = "", ns = "", id: parentId } = addressOf(config);
    const values = Object.entries(newVersions).map(([channel, version]) => ({
      channel,
      version: String(version),
      value: this.#encode(threadId, checkpoint.channel_values, channel),
    }));
    return {
      threadId,
      ns,
      id: checkpoint.id,
      parentId,
      source: metadata.source,
      replay: config.configurable?.["__pregel_replay_state"] !== undefined,
      checkpoint: JSON.stringify(this._dumpCheckpoint(checkpoint)),
      metadata: writeMetadata(metadata),
      values: values.map(({ channel, version, value }) => ({
        channel,
        version,
        type: value?.type ?? EMPTY_TYPE,
        bytes: value?.bytes,
      })),
      parts: partsOf(values.map(({ value }) => value)),
    };
  }

  #encode(threadId: string, values: Readonly<Record<string, unknown>>, channel: string): EncodedValue | undefined {
    if (!Object.hasOwn(values, channel)) return undefined;
    return encoded(threadId, channel, values[channel]);
  }

  override async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = "",
  ): Promise<void> {
    const { threadId, ns = "", id } = addressOf(config);
    if (threadId === undefined || id === undefined) {
      throw new InvalidOptionError(
        "Expected `configurable.thread_id` and `configurable.checkpoint_id` in the config of pending writes.",
      );
    }
    if (writes.length === 0) return;
    const values = writes.map(([channel, value]) => encoded(threadId, String(channel), value));
    const rows = values.map(({ type, bytes }, i) => {
      const channel = String(writes[i]?.[0]);
      return { idx: WRITES_IDX_MAP[channel] ?? i, channel, type, bytes };
    });
    const parts = partsOf(values);
    await this.#gate.putWrites({ threadId, ns, checkpointId: id, taskId, taskPath, writes: rows, parts });
  }

  /**
   * Deletes the thread for good, what the ledger knows of it included, as the pack's own `deleteThread` does.
   *
   * @throws ThreadBusyError while a run has it or a write of it is in doubt: it takes no run any more, and whoever sweeps
   *   deletes it when that is over.
   */
  override async deleteThread(threadId: string): Promise<void> {
    const database = await this.#open();
    if ((await requestDeletion(database, threadId, "its checkpointer")) !== "here") return;
    const answer = await purgeThread(database, threadId);
    if (!answer.purged) throw notYetDeleted(threadId, answer);
  }
}

function notYetDeleted(threadId: string, { running, inDoubt }: Hindrance): ThreadBusyError {
  const why = running
    ? "a run still has it, and is being told to stop"
    : `${inDoubt.length} of its writes must be settled first: longhaul reconcile list`;
  return new ThreadBusyError(
    `Thread "${threadId}" is stopped, and is deleted as soon as it can be; now ${why}. Whoever sweeps (a worker, a server) completes it.`,
    { threadId },
  );
}

function encoded(threadId: string, channel: string, value: unknown): EncodedValue {
  try {
    return encodeValue(value, `channel "${channel}"`);
  } catch (error) {
    if (!(error instanceof UnserializableError)) throw error;
    throw new UnserializableError(error.path, error.problem, { threadId });
  }
}

/** Each once, also when several values have it. */
function partsOf(values: readonly (EncodedValue | undefined)[]): Part[] {
  return [
    ...new Map(values.flatMap((value) => (value?.parts ?? []).map((part) => [part.digest, part] as const))).values(),
  ];
}

/** PostgresSaver wants a pool at construction, and this saver has none before its first use. */
function lazyPool(open: () => Promise<PooledDatabase>): pg.Pool {
  const pool = {
    query: async (query: string, values?: unknown[]) => (await open()).pool.query(query, values),
    connect: async () => (await open()).pool.connect(),
    end: async () => (await open()).pool.end(),
  };
  // The three methods are all that PostgresSaver calls.
  return pool as unknown as pg.Pool;
}
